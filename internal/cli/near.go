package cli

import (
	"strings"

	"hopwire/internal/config/schema"
)

// nearMost is how many names that are near a misspelt one are told.
const nearMost = 3

// nearest is the end of a message about a name that is not there: those that are near it, or "".
func nearest(name string, all []string) string {
	near := schema.Near(name, all)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near[:min(len(near), nearMost)], ", ") + "?"
}
