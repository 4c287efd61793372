package otelobserve

import "context"

// inject returns what of the context travels in _meta, beside what the caller put
// there: a trace that the caller names is the caller's, state included.
func (t *telemetry) inject(ctx context.Context, present map[string]any) map[string]string {
	out := carrier{}
	t.propagator.Inject(ctx, out)
	if has(present, metaTraceParent) || has(present, metaTraceState) {
		delete(out, metaTraceParent)
		delete(out, metaTraceState)
	}
	if has(present, metaBaggage) {
		delete(out, metaBaggage)
	}
	return out
}

func has(meta map[string]any, name string) bool {
	_, ok := meta[name]
	return ok
}

// carrier carries a trace context out (propagation.TextMapCarrier). It takes the
// three names alone that need no prefix in _meta.
type carrier map[string]string

func (c carrier) Get(name string) string { return c[name] }

func (c carrier) Set(name, value string) {
	if traces(name) {
		c[name] = value
	}
}

func (c carrier) Keys() []string { return keys(c) }

// received reads a trace context from the _meta of a request.
type received map[string]any

func (r received) Get(name string) string {
	if !traces(name) {
		return ""
	}
	s, _ := r[name].(string)
	return s
}

func (r received) Set(string, string) {}

func (r received) Keys() []string { return keys(r) }

func traces(name string) bool {
	return name == metaTraceParent || name == metaTraceState || name == metaBaggage
}

func keys[V any](m map[string]V) []string {
	var all []string
	for name := range m {
		if traces(name) {
			all = append(all, name)
		}
	}
	return all
}
