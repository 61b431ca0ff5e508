// Package policy is what the destinationPolicy part of a configuration means, as pure data:
// destination patterns, the map that picks one entry for a destination, and the entry with its
// strategies. Field names follow ActiveMQ's policyEntry attributes; NewEntry has their defaults.
//
// A field's comment says what the attribute means, not that a broker obeys it: many it only
// carries. Which are honoured is data in internal/config/schema, of which docs/configuration.md is
// made.
package policy
