package pool

import "container/list"

// Stack holds ready runners by id; the freshest is taken first. The zero value is empty.
type Stack struct {
	order list.List
	byID  map[string]*list.Element
}

// Push puts the id on top, or moves nothing if it is there already. It reports whether it was new.
func (s *Stack) Push(id string) bool {
	if _, ok := s.byID[id]; ok {
		return false
	}
	if s.byID == nil {
		s.byID = map[string]*list.Element{}
	}
	s.byID[id] = s.order.PushFront(id)
	return true
}

// Pop takes the freshest.
func (s *Stack) Pop() (id string, ok bool) {
	front := s.order.Front()
	if front == nil {
		return "", false
	}
	id = s.order.Remove(front).(string) // only strings go in
	delete(s.byID, id)
	return id, true
}

// Remove takes the id out; it reports whether it was there.
func (s *Stack) Remove(id string) bool {
	e, ok := s.byID[id]
	if !ok {
		return false
	}
	s.order.Remove(e)
	delete(s.byID, id)
	return true
}

// Len is how many are ready.
func (s *Stack) Len() int { return s.order.Len() }
