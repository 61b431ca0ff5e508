// Package queue is one queue's state machine: which copies wait, who is offered which copy, and
// what makes a refused pair worth another look. It does no I/O; stored copies that are not in
// memory are asked for through Host.
//
// # Lanes
//
// Pending copies stand in two lanes, both ordered by sequence, the order of arrival. The returned
// lane holds copies that were delivered and came back; it is looked at first, and a copy that comes
// back takes the positions of all subscriptions there back to it, so that it is fresh to each.
//
// # Positions
//
// Each subscription's Slot has a position in each lane. Invariant: every pending copy below the
// position was refused to this subscription for a reason that cannot change by itself, or stands
// in the slot's list of copies to look at again, or in the queue's heap of times. So a pair is
// evaluated once, a match behind many others is found, and nothing rescans on an acknowledgement.
//
// A wave takes all ready slots through a lane together, from the lowest of their positions on; each
// is offered what it has not looked at. What makes a slot look at something again takes it out of
// the wave, which begins anew there.
//
// # Gaps
//
// Pending copies that are durable need not be in memory. The sequences of those that are not are
// the main lane's gaps; a subscription whose position reaches a gap waits there, and makes the
// queue ask its Host for a page. The others go on behind the gap: neither one's search through what
// is stored nor a page that cannot be read keeps them from what they have not looked at. Invariant:
// a sequence is in a gap if and only if its copy is stored, pending, and not in memory.
package queue
