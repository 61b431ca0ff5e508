package message

// Oversized comes in the place of a message above the receiver's frame limit: of Message only what
// precedes its body is known. Cause tells both sizes.
type Oversized struct {
	*Message
	Cause error
}

// Err is what the sender is told.
func (o *Oversized) Err() error {
	return Errorf(Limit, "message %s to %s: %w", o.ID, o.Destination, o.Cause)
}
