package message

// Principal is an authenticated user with its groups.
type Principal struct {
	User   string
	Groups []string
}
