package jobspec

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/go-cty-funcs/cidr"
	"github.com/hashicorp/go-cty-funcs/collection"
	"github.com/hashicorp/go-cty-funcs/crypto"
	"github.com/hashicorp/go-cty-funcs/encoding"
	"github.com/hashicorp/go-cty-funcs/uuid"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// functions returns the functions of Nomad's job files, from the libraries that Nomad takes them from. A job file that a
// server reads must not read the server's files, so functions that read files only work with Options.Dir.
func functions(o Options) map[string]function.Function {
	f := map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "can": tryfunc.CanFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc,
		"chunklist": stdlib.ChunklistFunc, "coalesce": collection.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc,
		"compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
		"csvdecode": stdlib.CSVDecodeFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc,
		"flatten": stdlib.FlattenFunc, "floor": stdlib.FloorFunc, "format": stdlib.FormatFunc,
		"formatdate": stdlib.FormatDateFunc, "formatlist": stdlib.FormatListFunc, "indent": stdlib.IndentFunc,
		"index": indexOf, "join": stdlib.JoinFunc, "jsondecode": stdlib.JSONDecodeFunc,
		"jsonencode": stdlib.JSONEncodeFunc, "keys": stdlib.KeysFunc, "length": length, "log": stdlib.LogFunc,
		"lookup": stdlib.LookupFunc, "lower": stdlib.LowerFunc, "max": stdlib.MaxFunc, "merge": stdlib.MergeFunc,
		"min": stdlib.MinFunc, "parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "range": stdlib.RangeFunc,
		"regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc, "regex_replace": stdlib.RegexReplaceFunc,
		"replace": stdlib.ReplaceFunc, "reverse": stdlib.ReverseListFunc, "setintersection": stdlib.SetIntersectionFunc,
		"setproduct": boundedProduct(), "setunion": stdlib.SetUnionFunc, "signum": stdlib.SignumFunc,
		"slice": stdlib.SliceFunc, "sort": stdlib.SortFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc,
		"strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc, "timeadd": stdlib.TimeAddFunc, "title": stdlib.TitleFunc,
		"trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
		"trimsuffix": stdlib.TrimSuffixFunc, "try": tryfunc.TryFunc, "upper": stdlib.UpperFunc, "values": stdlib.ValuesFunc,
		"zipmap":     stdlib.ZipmapFunc,
		"convert":    typeexpr.ConvertFunc,
		"tostring":   convertTo(cty.String),
		"tonumber":   convertTo(cty.Number),
		"tobool":     convertTo(cty.Bool),
		"tolist":     convertTo(cty.List(cty.DynamicPseudoType)),
		"toset":      convertTo(cty.Set(cty.DynamicPseudoType)),
		"tomap":      convertTo(cty.Map(cty.DynamicPseudoType)),
		"yamldecode": yaml.YAMLDecodeFunc, "yamlencode": yaml.YAMLEncodeFunc,
		"urlencode":    encoding.URLEncodeFunc,
		"base64encode": encoding.Base64EncodeFunc,
		"base64decode": encoding.Base64DecodeFunc,
		"md5":          crypto.Md5Func,
		"sha1":         crypto.Sha1Func,
		"sha256":       crypto.Sha256Func,
		"sha512":       crypto.Sha512Func,
		"bcrypt":       cheapBcrypt,
		"uuidv4":       uuid.V4Func,
		"uuidv5":       uuid.V5Func,
		"timestamp":    timestamp(o.Now),
		"cidrhost":     cidr.HostFunc, "cidrnetmask": cidr.NetmaskFunc, "cidrsubnet": cidr.SubnetFunc, "cidrsubnets": cidr.SubnetsFunc,
	}
	// The bounds come last, so that no function is without them.
	maps.Copy(f, fileFunctions(o.Dir))
	return withinLimits(f)
}

// convertTo returns the function that converts any value to the type, as tostring and tolist do. Null stays null.
func convertTo(t cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { v, err := convert.Convert(args[0], t); return v.Type(), err },
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], t) },
	})
}

// timestamp is the time now in UTC, by a clock that the caller gives.
func timestamp(now func() time.Time) function.Function {
	return function.New(&function.Spec{
		Type: function.StaticReturnType(cty.String),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			if now == nil {
				return cty.DynamicVal, errors.New("there is no clock here")
			}
			return cty.StringVal(now().UTC().Format(time.RFC3339)), nil
		},
	})
}

// cheapBcrypt is bcrypt with a bounded cost: each step of it doubles the time.
var cheapBcrypt = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "str", Type: cty.String}},
	VarParam: &function.Parameter{Name: "cost", Type: cty.Number},
	Type:     function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if len(args) > 1 && args[1].GreaterThan(cty.NumberIntVal(maxCost)).True() {
			return cty.DynamicVal, fmt.Errorf("the cost is at most %d", maxCost)
		}
		return crypto.BcryptFunc.Call(args)
	},
})

// length counts characters too, not only elements.
var length = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].Type() == cty.String {
			return stdlib.Strlen(args[0])
		}
		if t := args[0].Type(); t.IsObjectType() {
			return cty.NumberIntVal(int64(len(t.AttributeTypes()))), nil
		}
		return stdlib.Length(args[0])
	},
})

// indexOf finds an element's place in a list.
var indexOf = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if !args[0].CanIterateElements() {
			return cty.DynamicVal, errors.New("the first argument must be a list")
		}
		i := int64(0)
		for it := args[0].ElementIterator(); it.Next(); i++ {
			if _, v := it.Element(); v.Equals(args[1]).True() {
				return cty.NumberIntVal(i), nil
			}
		}
		return cty.DynamicVal, errors.New("item not found")
	},
})
