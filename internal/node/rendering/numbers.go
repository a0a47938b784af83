package rendering

import (
	"errors"
	"reflect"

	"github.com/drover-project/drover"
)

// arithmetic makes a function of two numbers in consul-template's order, the second argument first. Where one is a float all is; two
// unsigned ones stay so; else it is signed.
func arithmetic(
	name string,
	signed func(a, b int64) (int64, error), unsigned func(a, b uint64) (uint64, error), floats func(a, b float64) (float64, error),
) func(b, a any) (any, error) {
	return func(b, a any) (any, error) {
		x, y, err := numbers(name, a, b)
		switch {
		case err != nil:
			return nil, err
		case x.kind == reflect.Float64 || y.kind == reflect.Float64:
			if floats == nil {
				return nil, drover.Errorf(drover.Invalid, "%s: wants integers, got %T and %T", name, a, b)
			}
			return floats(x.float(), y.float())
		case x.kind == reflect.Uint64 && y.kind == reflect.Uint64:
			return unsigned(x.u, y.u)
		}
		return signed(x.int(), y.int())
	}
}

// choose makes a function that returns the one of two numbers that is better, as it is.
func choose(name string, better func(a, b float64) bool) func(b, a any) (any, error) {
	return func(b, a any) (any, error) {
		x, y, err := numbers(name, a, b)
		switch {
		case err != nil:
			return nil, err
		case better(x.float(), y.float()):
			return x.wide(), nil
		}
		return y.wide(), nil
	}
}

// number is a number of any type.
type number struct {
	kind reflect.Kind // Int64, Uint64 or Float64
	i    int64
	u    uint64
	f    float64
}

func (n number) int() int64 {
	if n.kind == reflect.Uint64 {
		return int64(n.u)
	}
	return n.i
}

func (n number) float() float64 {
	switch n.kind {
	case reflect.Int64:
		return float64(n.i)
	case reflect.Uint64:
		return float64(n.u)
	default:
		return n.f
	}
}

// wide is the number in the widest type of its kind.
func (n number) wide() any {
	switch n.kind {
	case reflect.Int64:
		return n.i
	case reflect.Uint64:
		return n.u
	default:
		return n.f
	}
}

func numbers(name string, a, b any) (x, y number, err error) {
	if x, err = numberOf(name, a); err == nil {
		y, err = numberOf(name, b)
	}
	return x, y, err
}

func numberOf(name string, of any) (number, error) {
	v := reflect.ValueOf(of)
	switch {
	case v.CanInt():
		return number{kind: reflect.Int64, i: v.Int()}, nil
	case v.CanUint():
		return number{kind: reflect.Uint64, u: v.Uint()}, nil
	case v.CanFloat():
		return number{kind: reflect.Float64, f: v.Float()}, nil
	}
	return number{}, drover.Errorf(drover.Invalid, "%s: wants numbers, got %T", name, of)
}

var errByZero = errors.New("division by zero")

// calculations are consul-template's functions of two numbers.
func calculations() map[string]any {
	return map[string]any{
		"add": arithmetic("add", func(a, b int64) (int64, error) { return a + b, nil },
			func(a, b uint64) (uint64, error) { return a + b, nil }, func(a, b float64) (float64, error) { return a + b, nil }),
		"subtract": arithmetic("subtract", func(a, b int64) (int64, error) { return a - b, nil },
			func(a, b uint64) (uint64, error) { return a - b, nil }, func(a, b float64) (float64, error) { return a - b, nil }),
		"multiply": arithmetic("multiply", func(a, b int64) (int64, error) { return a * b, nil },
			func(a, b uint64) (uint64, error) { return a * b, nil }, func(a, b float64) (float64, error) { return a * b, nil }),
		"divide": arithmetic("divide", nonZero(func(a, b int64) int64 { return a / b }), nonZero(func(a, b uint64) uint64 { return a / b }),
			func(a, b float64) (float64, error) { return a / b, nil }),
		"modulo": arithmetic("modulo", nonZero(func(a, b int64) int64 { return a % b }), nonZero(func(a, b uint64) uint64 { return a % b }),
			nil),
		"minimum": choose("minimum", func(a, b float64) bool { return a < b }),
		"maximum": choose("maximum", func(a, b float64) bool { return a > b }),
	}
}

func nonZero[N int64 | uint64](f func(a, b N) N) func(a, b N) (N, error) {
	return func(a, b N) (N, error) {
		if b == 0 {
			return 0, errByZero
		}
		return f(a, b), nil
	}
}
