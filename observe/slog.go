package observe

import (
	"context"
	"log/slog"
)

// Log returns a [Handler] that logs each record as one line: the level is
// [Record.Level], the message the headline, and the facts stand in the group "call".
// What the logger does not want costs nothing.
func Log(logger *slog.Logger) Handler {
	return func(ctx context.Context, r *Record) {
		if level := r.Level(); logger.Enabled(ctx, level) {
			logger.LogAttrs(ctx, level, r.Headline(), slog.Any("call", r))
		}
	}
}

// Level is how much the outcome of the call matters to an operator: Info where it came
// to a result, Warn where the tool or the server said no or nothing has happened, Error
// where it is not known whether the tool ran, or what it answered could not be used.
func (r *Record) Level() slog.Level {
	switch {
	case r.Outcome.Usable() && r.Outcome != ToolError:
		return slog.LevelInfo
	case r.Outcome.Answered(), r.Delivery == NotSent, r.Delivery == Refused:
		return slog.LevelWarn
	}
	return slog.LevelError
}

// LogValue is the record in groups, without what is empty (log/slog.LogValuer).
func (r *Record) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 24)
	attrs = append(attrs, slog.String("tool", r.Tool), slog.String("outcome", string(r.Outcome)),
		slog.String("layer", string(r.Layer)), slog.String("delivery", string(r.Delivery)), slog.String("safety", r.Safety))
	attrs = appendTexts(attrs, "reason", r.Reason, "server", r.Server, "client", r.Client, "scenario", r.Scenario,
		"protocolVersion", r.ProtocolVersion, "breaker", r.Breaker, "idempotencyKey", r.IdempotencyKey, "excerpt", r.Excerpt, "modelText", r.ModelText)
	if r.RetryOrigin != OriginNone {
		attrs = appendTexts(attrs, "retryOrigin", string(r.RetryOrigin))
	}
	attrs = append(attrs, slog.Float64("durationMs", r.DurationMs), slog.Int("attempts", len(r.Attempts)),
		group("http", slog.Int("posts", r.PostCount), slog.Any("statuses", r.HTTPStatuses)),
		group("decision", slog.String("action", r.Decision.Action), slog.String("reason", r.Decision.Reason), slog.String("rule", r.Decision.Rule)))
	if code := r.JSONRPC.ErrorCode; code != nil {
		attrs = append(attrs, group("jsonrpc", appendTexts([]slog.Attr{slog.Int64("errorCode", *code)},
			"errorMessage", r.JSONRPC.ErrorMessage, "errorData", r.JSONRPC.ErrorData)...))
	}
	if l := r.Ledger; l != nil {
		attrs = append(attrs, group("ledger", appendTexts(nil, "step", string(l.Step), "kind", l.Kind, "settled", l.Settled)...))
	}
	if n := len(r.Would); n > 0 {
		attrs = append(attrs, group("would", slog.String("action", r.Would[0].Action), slog.String("reason", r.Would[0].Reason), slog.Int("decisions", n)))
	}
	if len(r.Deviations) > 0 {
		attrs = append(attrs, slog.Any("deviations", r.Deviations))
	}
	return slog.GroupValue(attrs...)
}

func group(name string, attrs ...slog.Attr) slog.Attr {
	return slog.Attr{Key: name, Value: slog.GroupValue(attrs...)}
}

// appendTexts adds the names and values that are not empty.
func appendTexts(attrs []slog.Attr, pairs ...string) []slog.Attr {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			attrs = append(attrs, slog.String(pairs[i], pairs[i+1]))
		}
	}
	return attrs
}
