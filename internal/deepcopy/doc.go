// Package deepcopy copies nouns of the vocabulary as a whole. Values that are in the store are shared by all who read
// them; whoever wants to change one takes a copy. It works by reflection: it is for the rare writer, such as a registration.
// It starts no goroutines.
package deepcopy
