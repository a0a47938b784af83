package nomad

import "context"

// pumped is what a blocking source gave.
type pumped[T any] struct {
	value T
	err   error // the last one
}

// pump turns a blocking source into a channel, so that its reader can also wait for a heartbeat. The channel ends
// with the first error. The source's values must stay valid.
func pump[T any](ctx context.Context, depth int, next func(context.Context) (T, error)) <-chan pumped[T] {
	out := make(chan pumped[T], depth)
	go func() { // ends with the source's first error, which ctx's end causes
		defer close(out)
		for {
			v, err := next(ctx)
			select {
			case out <- pumped[T]{v, err}:
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

// drain waits for the end of a pump whose context has ended, or whose source.
func drain[T any](source <-chan pumped[T]) {
	for range source { // what is read now is for nobody
	}
}
