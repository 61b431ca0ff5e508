// Package policy is what the destinationPolicy part of a configuration means, as pure data:
// destination patterns, the map that picks one entry for a destination, and the entry with its
// strategies. Field names follow ActiveMQ's policyEntry attributes; NewEntry has their defaults.
package policy
