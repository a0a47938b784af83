package pool

import "container/list"

// Queue is a line of waiters: first come, first served; anyone may leave it. The zero value is empty.
type Queue[T any] struct{ order list.List }

// Place is a waiter's place in a Queue.
type Place struct{ element *list.Element }

// Join goes to the end of the line.
func (q *Queue[T]) Join(waiter T) *Place { return &Place{q.order.PushBack(waiter)} }

// Leave gives the place up; it reports false if the waiter was served or has left already.
func (q *Queue[T]) Leave(p *Place) bool {
	if p.element == nil {
		return false
	}
	before := q.order.Len()
	q.order.Remove(p.element)
	p.element = nil
	return q.order.Len() < before
}

// Serve takes the first waiter out of the line.
func (q *Queue[T]) Serve() (waiter T, ok bool) {
	front := q.order.Front()
	if front == nil {
		return waiter, false
	}
	return q.order.Remove(front).(T), true // only T go in
}

// Len is how many wait.
func (q *Queue[T]) Len() int { return q.order.Len() }
