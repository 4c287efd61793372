package observe

// A Wait is one wait before an attempt.
type Wait struct {
	For WaitReason `json:"for"`
	Ms  float64    `json:"ms"`
}

// WaitReason says what an attempt waited for.
type WaitReason string

const (
	WaitBackoff WaitReason = "backoff" // our own, between attempts
	WaitServer  WaitReason = "server"  // the server's Retry-After to this call
	WaitGate    WaitReason = "gate"    // the server's Retry-After to another call
	WaitLimiter WaitReason = "limiter" // a token of the rate limiter
)
