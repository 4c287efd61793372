package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const head = `# Real servers: the same answers with and without

This page is written by ` + "`make realservers`" + `, which installs MCP servers of other people
(exact versions, by a lock file) and calls each of their tools twice: with the client of the Go SDK
bare, and with surecall around it under the default policy. Each client has a server process and a
directory of its own. What the host gets is compared value by value, and so are the lists of tools;
times, random ids, directories and ports are taken for equal. Tools that a server shows only to
clients with tasks, which the SDK has not, are not among them.

- **same**: the bare client gets a result, and the wrapped one gets the same.
- **named**: the bare client gets an error, and the wrapped one says what became of the call.

Nothing differs, or this page would not have been written: the check fails then. The error of a
bare client is a text; whether the tool may have run, which the last column says, it does not tell.

One difference is meant, and not among these calls: a call equal to one whose outcome is unknown is
held back for a while, where the bare client would make it ([idempotency.md](idempotency.md)).

`

// page is the text of docs/real-servers.md.
func page(inst *installation, reports []*report) string {
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "| package | version |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(inst.versions)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, inst.versions[name])
	}
	for _, r := range reports {
		r.write(&b)
	}
	return b.String()
}

func (r *report) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n", r.server)
	fmt.Fprintf(b, "MCP %s, %d tools, all of them called.\n\n", r.bare.version, len(r.bare.tools))
	fmt.Fprintf(b, "| call | compared | the bare client gets | the wrapped client says |\n|---|---|---|---|\n")
	for _, row := range r.rows {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.cell(), row.verdict(), row.bare.got(), row.outcome())
	}
}

// maxCell is the longest text of arguments in the table, in runes.
const maxCell = 90

// cell is the call in the table.
func (c call) cell() string {
	args := []rune(strings.ReplaceAll(c.args, "|", "&#124;"))
	if len(args) > maxCell {
		args = append(args[:maxCell], []rune("...")...)
	}
	code := "`" + c.tool + "`"
	if c.args != "{}" {
		code += " `" + string(args) + "`"
	}
	return code + c.circumstances()
}
