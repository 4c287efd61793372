package observe

import "context"

// A Handler takes records, one call at a time or several at once. It is what
// middleware.Options.OnRecord wants. It runs on the caller's goroutine before the
// call returns: it must not block, and must not change the record. One that may take
// its time belongs behind a [Queue].
type Handler = func(context.Context, *Record)

// Tee hands each record to all handlers in turn; nil ones are left out. A handler
// that panics takes nothing from the others: the panic is swallowed. A slow one
// delays those behind it and the call: put it behind a [Queue].
func Tee(handlers ...Handler) Handler {
	var all []Handler
	for _, h := range handlers {
		if h != nil {
			all = append(all, h)
		}
	}
	return func(ctx context.Context, r *Record) {
		for _, h := range all {
			safely(ctx, h, r)
		}
	}
}

func safely(ctx context.Context, h Handler, r *Record) {
	defer func() { _ = recover() }()
	h(ctx, r)
}
