package manage

import (
	"cmp"
	"slices"
)

func sortReasons(list []ReasonCount) {
	slices.SortFunc(list, func(a, b ReasonCount) int {
		if c := cmp.Compare(b.Count, a.Count); c != 0 {
			return c
		}
		return cmp.Compare(a.Reason, b.Reason)
	})
}
