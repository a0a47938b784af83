package image

// listen has f told of the pull's progress until the returned function was called.
func (s *Store) listen(key string, f func(Progress)) (end func()) {
	if f == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[key] == nil {
		s.listeners[key] = map[*func(Progress)]bool{}
	}
	s.listeners[key][&f] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if delete(s.listeners[key], &f); len(s.listeners[key]) == 0 {
			delete(s.listeners, key)
		}
	}
}

// tell tells all who listen. They must not call the store.
func (s *Store) tell(key string, p Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.listeners[key] {
		(*f)(p)
	}
}
