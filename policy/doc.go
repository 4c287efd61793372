// Package policy says what to do with a tool call: how safe a tool is, what may
// be repeated, how long to wait, what the model sees.
//
// A [Policy] is a list of rules; [Policy.Resolve] turns it into the [Tool] that
// is in force for one tool of one server (a [Resolver] remembers the answers);
// [Tool.Decide] answers the only question of the retry loop. Resolving and
// deciding are pure: time and randomness are arguments, nothing is read, nothing
// is kept. Only [Load] and [Read] touch a file; only [Resolver] and [Budget] hold state, and both are bounded.
//
// A policy is written in Go or read from a file ([Load], [Parse], [Marshal]); the
// names in a file are those of [Settings] in snake case. [Policy.Explain] says what it
// comes to for a tool, [Policy.Validate] what is wrong with it, and [Policy.Lint] what
// a server's tools have to say.
//
// The one rule, which no setting lifts: a call whose effect may have happened is
// sent again only where the policy says that a repeat of this tool is harmless
// ([Safety.SafeRepeat]). docs/policy.md has the decision table and the defaults.
package policy
