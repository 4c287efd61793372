package policy

import (
	"reflect"

	"github.com/surecall/surecall/observe"
)

var (
	typeSafety  = reflect.TypeFor[Safety]()
	typeGate    = reflect.TypeFor[Gate]()
	typeSurface = reflect.TypeFor[Surface]()
)

// words are the closed sets, by the types of the settings.
var words = map[reflect.Type][]string{
	typeSafety:  texts([]Safety{ReadOnly, Idempotent, Keyed, Unsafe}),
	typeGate:    texts([]Gate{GateServer, GateTool, GateOff}),
	typeSurface: texts([]Surface{SurfaceCaller, SurfaceModel, SurfaceModelProtocol, SurfaceModelTransport}),
}

// formWords are those that stand in lists of plain text, by the form in the tag.
var formWords = map[string][]string{
	"outcome":   texts(repeatable()),
	"deviation": texts(observe.Deviations()),
	"signal":    texts(Signals()),
}

// repeatable are the outcomes that a rule can name.
func repeatable() []observe.Outcome {
	var all []observe.Outcome
	for _, o := range observe.Outcomes() {
		if badOutcome(o) == "" {
			all = append(all, o)
		}
	}
	return all
}

func texts[T ~string](typed []T) []string {
	all := make([]string, len(typed))
	for i, w := range typed {
		all[i] = string(w)
	}
	return all
}
