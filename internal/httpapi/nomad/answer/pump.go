package answer

import "context"

// Item is what a blocking source yielded: a value, or the error that ended it.
type Item[T any] struct {
	value T
	err   error
}

// Pump turns a blocking source into a channel of the given depth, so that its reader can wait for a heartbeat, too. The
// channel ends with the source's first error, or with ctx. The source's values must stay valid.
func Pump[T any](ctx context.Context, depth int, next func(context.Context) (T, error)) <-chan Item[T] {
	out := make(chan Item[T], depth)
	go func() { // ends with the source's first error, which ctx's end causes
		defer close(out)
		for {
			v, err := next(ctx)
			select {
			case out <- Item[T]{v, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// Drain waits for the end of a pump whose context has ended, or whose source.
func Drain[T any](source <-chan Item[T]) {
	for range source { // what is read now is for nobody
	}
}
