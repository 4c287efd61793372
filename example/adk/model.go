package main

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"
)

// A script is a model that says what it was told to say, one turn after the other.
// Each turn is given what the tool answered to the turn before.
type script struct {
	turns []turn
	next  int
	saw   []string // what the tools answered, as the model reads it
}

type turn func(answer string) *genai.Content

// Name implements [model.LLM].
func (*script) Name() string { return "script" }

// GenerateContent implements [model.LLM].
func (s *script) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		answer, ok := lastAnswer(req.Contents)
		if ok {
			s.saw = append(s.saw, answer)
		}
		content := says("Done.")(answer)
		if s.next < len(s.turns) {
			content = s.turns[s.next](answer)
		}
		s.next++
		yield(&model.LLMResponse{Content: content, TurnComplete: true}, nil)
	}
}

// lastAnswer is what the latest message of a conversation tells of a tool, if it does.
func lastAnswer(contents []*genai.Content) (string, bool) {
	if len(contents) == 0 {
		return "", false
	}
	for _, p := range contents[len(contents)-1].Parts {
		if p.FunctionResponse == nil {
			continue
		}
		for _, member := range []string{"output", "error"} {
			if text, ok := p.FunctionResponse.Response[member]; ok {
				return fmt.Sprint(text), true
			}
		}
	}
	return "", false
}

// calls is a turn that calls a tool. The id is the model's; a run that is resumed asks
// for the same call under the same id.
func calls(id, tool string, args map[string]any) turn {
	return func(string) *genai.Content {
		return &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{
			FunctionCall: &genai.FunctionCall{ID: id, Name: tool, Args: args},
		}}}
	}
}

// says is a turn that ends the run.
func says(text string) turn {
	return func(string) *genai.Content { return genai.NewContentFromText(text, genai.RoleModel) }
}
