// Package middlewaretest is an MCP server that misbehaves on purpose.
package middlewaretest
