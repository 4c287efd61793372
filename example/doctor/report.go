package main

import (
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/surecall/surecall/internal/plaintext"
)

// margin is the column in which the texts of a report begin.
const margin = 13

// maxResult bounds what is shown of a block of a result, in bytes.
const maxResult = 600

// tell is the report of a call in words: its record, what to do, and the result.
func tell(f *finding) string {
	r := f.record
	return "\n" + r.Text() + line("to do", advice(r)) + line("result", result(f))
}

// line is what stands under a label, unless that is nothing.
func line(label, text string) string {
	if text == "" {
		return ""
	}
	return plaintext.Paragraph(fmt.Sprintf("  %-*s", margin-2, label), text, margin)
}

// result is the server's own; what the model sees in its place is in the record.
func result(f *finding) string {
	if f.record.ModelText != "" {
		return ""
	}
	return content(f.result)
}

// content shows a result, shortened: each block, and how many there are.
func content(res *mcp.CallToolResult) string {
	switch {
	case res == nil:
		return ""
	case len(res.Content) == 0 && res.StructuredContent != nil:
		return plain(fmt.Sprint(res.StructuredContent), maxResult)
	case len(res.Content) == 0:
		return "empty"
	}
	text := block(res.Content[0])
	for i, c := range res.Content[1:] {
		if len(text) >= maxResult {
			return text + " | and " + count(len(res.Content)-1-i, "block") + " more"
		}
		text += " | " + block(c)
	}
	return text
}

// block shows one block of a result.
func block(c mcp.Content) string {
	switch c := c.(type) {
	case *mcp.TextContent:
		return quoted(c.Text, maxResult)
	case *mcp.ImageContent:
		return fmt.Sprintf("an image, %s, %d bytes", plain(c.MIMEType, maxName), len(c.Data))
	case *mcp.AudioContent:
		return fmt.Sprintf("a sound, %s, %d bytes", plain(c.MIMEType, maxName), len(c.Data))
	case *mcp.ResourceLink:
		return "a link to " + plain(c.URI, maxName)
	case *mcp.EmbeddedResource:
		return "an embedded resource"
	}
	return "another kind of content"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
