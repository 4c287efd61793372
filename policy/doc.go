// Package policy says what to do with a tool call: how safe a tool is, what may
// be repeated, how long to wait, what the model sees.
//
// A [Policy] is a list of rules; [Policy.Resolve] turns it into the [Tool] that
// is in force for one tool of one server; [Tool.Decide] answers the only
// question of the retry loop. Resolving and deciding are pure: time and
// randomness are arguments, nothing is read, nothing is kept.
package policy
