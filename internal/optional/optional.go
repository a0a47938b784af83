package optional

// Value returns what p points to, and the zero value if p is nil.
func Value[T any](p *T) T {
	var zero T
	return Or(p, zero)
}

// Or returns what p points to, and fallback if p is nil.
func Or[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

// Default sets a field that has its zero value.
func Default[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// DefaultPointer sets a field that is nil to a pointer to value.
func DefaultPointer[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

// Override replaces a field by a value that is not zero.
func Override[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}
