package main

import (
	"context"
	"encoding/json"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/schema"
)

// A script is a model that says what it was told to say, one turn after the other.
// Each turn is given what the tool answered to the turn before.
type script struct {
	turns []turn
	next  int
	saw   []string // what the tools answered
}

type turn func(answer string) *schema.Message

// Generate implements [model.ToolCallingChatModel].
func (s *script) Generate(_ context.Context, input []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	answer := ""
	if last := input[len(input)-1]; last.Role == schema.Tool {
		answer = last.Content
		s.saw = append(s.saw, "the model reads: "+answer)
	}
	message := says("Done.")(answer)
	if s.next < len(s.turns) {
		message = s.turns[s.next](answer)
	}
	s.next++
	return message, nil
}

// Stream implements [model.ToolCallingChatModel].
func (s *script) Stream(ctx context.Context, input []*schema.Message, opts ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	message, err := s.Generate(ctx, input, opts...)
	if err != nil {
		return nil, err
	}
	return schema.StreamReaderFromArray([]*schema.Message{message}), nil
}

// WithTools implements [model.ToolCallingChatModel]. A script knows its tools.
func (s *script) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return s, nil }

// calls is a turn that calls a tool. The id is the model's.
func calls(id, tool string, args map[string]any) turn {
	arguments, _ := json.Marshal(args) // texts and numbers
	return func(string) *schema.Message {
		return schema.AssistantMessage("", []schema.ToolCall{{
			ID: id, Type: "function", Function: schema.FunctionCall{Name: tool, Arguments: string(arguments)},
		}})
	}
}

// says is a turn that ends the run.
func says(text string) turn {
	return func(string) *schema.Message { return schema.AssistantMessage(text, nil) }
}
