package tidy

import "strings"

// module is the path of the main module; the root package is ".".
const module = "hopwire"

// everything stands for all packages of the module.
const everything = "..."

// imports is the import table: the packages of ours that a package may import, by its path below
// the module. A row "a/..." is for the packages below a; the longest row that fits counts. In a
// list, "a/..." allows the packages below a, not a itself. Test files are free.
var imports = map[string][]string{
	"openwire/primitive": {},
	"openwire":           {"openwire/primitive"},
	"openwire/...":       {"openwire", "openwire/..."},
	"client": {
		"openwire", "openwire/...", "internal/address", "internal/transport", "internal/rungroup",
	},

	"internal/message":    {"openwire/primitive"},
	"internal/address":    {},
	"internal/rungroup":   {},
	"internal/properties": {},
	"internal/selector":   {"internal/message"},
	"internal/loop":       {"internal/message"},
	"internal/policy":     {"internal/message"},
	"internal/store":      {"internal/message", "internal/rungroup"},
	"internal/wire": {
		"internal/message", "internal/loop", "internal/transport", "internal/rungroup", "openwire",
		"openwire/primitive",
	},
	"internal/network":  {"internal/message"},
	"internal/tidy":     {},
	"internal/plural":   {},
	"internal/terminal": {},

	"internal/broker/...": {
		"internal/message", "internal/selector", "internal/policy", "internal/loop",
	},
	"internal/broker": {
		"internal/broker/...", "internal/store", "internal/policy", "internal/selector",
		"internal/loop", "internal/message", "internal/network", "internal/plural",
	},
	"internal/bridge/wants": {"internal/message"},
	"internal/bridge": {
		"internal/bridge/...", "internal/message", "internal/network", "internal/policy",
		"internal/selector", "internal/loop", "internal/properties",
	},

	"internal/link": {
		"internal/bridge", "internal/wire", "openwire", "internal/transport", "internal/address",
		"internal/security", "internal/loop", "internal/message",
		"internal/rungroup",
	},
	"internal/front/openwire": {
		"internal/broker", "internal/message", "internal/loop", "internal/transport",
		"internal/rungroup", "internal/wire", "openwire",
	},

	"internal/security": {
		"internal/message", "internal/loop", "internal/rungroup", "internal/broker", "internal/policy",
	},
	"internal/transport": {
		"internal/message", "internal/loop", "internal/rungroup", "internal/address",
	},
	"internal/store/...": {"internal/store", "internal/message", "internal/rungroup"},
	"internal/store/disk": {
		"internal/store/disk/...", "internal/store", "internal/message", "internal/rungroup",
	},
	"internal/store/disk/files":   {},
	"internal/store/disk/patient": {"internal/store/disk/files", "internal/rungroup"},

	"internal/config": {
		"internal/policy", "internal/message", "internal/properties", "internal/address",
		"internal/config/...",
	},
	"internal/config/...": {"internal/policy", "internal/message", "internal/config/..."},
	"internal/manage": {
		"internal/broker", "internal/bridge", "internal/message",
	},
	"internal/manage/...": {
		"internal/manage", "internal/broker", "internal/bridge", "internal/message",
		"internal/rungroup",
	},

	".":                {everything},
	"internal/cli":     {everything},
	"internal/cli/...": {everything},
	"internal/sim":     {everything},
	"cmd/hopwire":      {"internal/cli"},
	"test":             {everything},
	"test/...":         {everything},
}

// refused takes back single edges that imports allows by everything.
var refused = map[string][]string{
	".": {"internal/cli", "internal/sim"},
}

// loopNames is what the state machines below internal/broker may use of internal/loop: the way to
// time, and what it hands out.
var loopNames = []string{"Env", "Timer"}

// goers are the packages that may write a go statement: the run group, which names and stops what
// it starts, the loop itself, and test programs.
var goers = []string{"internal/rungroup", "internal/loop", "test", "test/..."}

// printers are the packages that print for people, which internal/terminal does for them.
var printers = []string{"internal/cli", "internal/cli/..."}

// printing is what they may not use.
var printing = []string{"fmt.Print", "fmt.Printf", "fmt.Println", "fmt.Fprint", "fmt.Fprintf",
	"fmt.Fprintln", "io.WriteString"}

// row finds the row of a package in the import table.
func row(pkg string) (allowed []string, ok bool) {
	if allowed, ok = imports[pkg]; ok {
		return allowed, true
	}
	for up := pkg; up != ""; {
		cut := strings.LastIndexByte(up, '/')
		if cut < 0 {
			break
		}
		up = up[:cut]
		if allowed, ok = imports[up+"/..."]; ok {
			return allowed, true
		}
	}
	return nil, false
}

// fits reports whether a list names a package.
func fits(list []string, pkg string) bool {
	for _, pattern := range list {
		if pattern == everything || pattern == pkg {
			return true
		}
		if up, ok := strings.CutSuffix(pattern, "..."); ok && strings.HasPrefix(pkg, up) {
			return true
		}
	}
	return false
}

// inCore reports whether a package is of the core, which meets the world only through its loop.
func inCore(pkg string) bool {
	return fits([]string{
		"internal/broker", "internal/broker/...", "internal/bridge",
		"internal/bridge/...", "internal/network",
	}, pkg)
}
