package observe

import "context"

type (
	serverKey   struct{}
	scenarioKey struct{}
	userKey     struct{}
)

// WithServer names the server of the session that is about to be connected. Put
// it into the context that is given to Client.Connect: rules, breakers and
// records then know the server by this name instead of its endpoint.
func WithServer(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, serverKey{}, name)
}

// ServerFrom returns the name given by [WithServer], or "".
func ServerFrom(ctx context.Context) string { return stringFrom(ctx, serverKey{}) }

// WithScenario labels the calls made with the context in their records.
func WithScenario(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, scenarioKey{}, name)
}

// ScenarioFrom returns the label given by [WithScenario], or "".
func ScenarioFrom(ctx context.Context) string { return stringFrom(ctx, scenarioKey{}) }

// WithUserRepeat says that a person asked for this call again, so that its
// record carries the retry origin "user".
func WithUserRepeat(ctx context.Context) context.Context {
	return context.WithValue(ctx, userKey{}, true)
}

// IsUserRepeat reports whether [WithUserRepeat] was used.
func IsUserRepeat(ctx context.Context) bool { return ctx.Value(userKey{}) != nil }

func stringFrom(ctx context.Context, key any) string {
	s, _ := ctx.Value(key).(string)
	return s
}
