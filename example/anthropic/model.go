package main

import (
	"encoding/json"
	"net/http"
	"strings"
)

// A script is a model that says what it was told to say, one turn after the other. Each
// turn is given what the tool answered to the turn before. It serves POST /v1/messages.
type script struct {
	turns []turn
	next  int
	saw   []string // what the tools answered, as the model reads it
}

type turn func(answer string) reply

// A reply is what the endpoint answers: blocks of content, or the status of a failure.
type reply struct {
	content []block
	status  int
}

// A block is a part of a message of any kind.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   any             `json:"input,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
}

// ServeHTTP implements [http.Handler].
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ Messages []struct{ Content []block } }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "not a request for a message", http.StatusBadRequest)
		return
	}
	answer := toolAnswer(request.Messages[len(request.Messages)-1].Content)
	reply := says("Done.")(answer)
	if s.next < len(s.turns) {
		reply = s.turns[s.next](answer)
	}
	s.next++
	if reply.status != 0 {
		http.Error(w, "the model is not to be had", reply.status)
		return
	}
	if answer != "" {
		s.saw = append(s.saw, answer)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "script",
		"content": reply.content, "stop_reason": reply.stopReason(),
		"usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	})
}

func (r reply) stopReason() string {
	if r.content[0].Type == "tool_use" {
		return "tool_use"
	}
	return "end_turn"
}

// toolAnswer is what the latest message of a conversation tells of a tool, or "".
func toolAnswer(content []block) string {
	var text strings.Builder
	for _, b := range content {
		var parts []block
		if b.Type != "tool_result" || json.Unmarshal(b.Content, &parts) != nil {
			continue
		}
		for _, p := range parts {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

// calls is a turn that calls a tool. The id is the model's.
func calls(id, tool string, args map[string]any) turn {
	return func(string) reply {
		return reply{content: []block{{Type: "tool_use", ID: id, Name: tool, Input: args}}}
	}
}

// fails is a turn in which the model cannot be reached.
func fails(status int) turn { return func(string) reply { return reply{status: status} } }

// says is a turn that ends the run.
func says(text string) turn {
	return func(string) reply { return reply{content: []block{{Type: "text", Text: text}}} }
}
