package jobspec

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
	"golang.org/x/crypto/bcrypt"
)

// functions are those of Nomad's job files. A job file that a server reads must not read the server's files: those
// functions only work with Options.Dir.
func functions(o Options) map[string]function.Function {
	f := map[string]function.Function{
		"abs": stdlib.AbsoluteFunc, "can": tryfunc.CanFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc,
		"chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc, "coalescelist": stdlib.CoalesceListFunc,
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
		"urlencode":    text(func(s string) (string, error) { return url.QueryEscape(s), nil }),
		"base64encode": text(func(s string) (string, error) { return base64.StdEncoding.EncodeToString([]byte(s)), nil }),
		"base64decode": text(func(s string) (string, error) { b, err := base64.StdEncoding.DecodeString(s); return string(b), err }),
		"md5":          digest(md5.New),
		"sha1":         digest(sha1.New),
		"sha256":       digest(sha256.New),
		"sha512":       digest(sha512.New),
		"bcrypt":       bcryptFunc,
		"uuidv4":       nullary(func() (string, error) { return uuid.NewString(), nil }),
		"uuidv5":       uuidv5,
		"timestamp": nullary(func() (string, error) {
			if o.Now == nil {
				return "", errors.New("there is no clock here")
			}
			return o.Now().UTC().Format(time.RFC3339), nil
		}),
		"cidrhost": cidrHost, "cidrnetmask": cidrNetmask, "cidrsubnet": cidrSubnet, "cidrsubnets": cidrSubnets,
	}
	maps.Copy(f, files{o.Dir}.functions())
	return withinLimits(f)
}

func text(f func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "text", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := f(args[0].AsString())
			return cty.StringVal(s), err
		},
	})
}

func convertTo(t cty.Type) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowNull: true}},
		Type:   func(args []cty.Value) (cty.Type, error) { v, err := convert.Convert(args[0], t); return v.Type(), err },
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return convert.Convert(args[0], t) },
	})
}

func nullary(f func() (string, error)) function.Function {
	return function.New(&function.Spec{
		Type: function.StaticReturnType(cty.String),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			s, err := f()
			return cty.StringVal(s), err
		},
	})
}

func digest(make func() hash.Hash) function.Function {
	return text(func(s string) (string, error) {
		h := make()
		h.Write([]byte(s)) // never fails
		return hex.EncodeToString(h.Sum(nil)), nil
	})
}

var bcryptFunc = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "text", Type: cty.String}},
	VarParam: &function.Parameter{Name: "cost", Type: cty.Number},
	Type:     function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		cost := bcrypt.DefaultCost
		if len(args) > 2 {
			return cty.DynamicVal, errors.New("takes at most two arguments")
		}
		if len(args) == 2 {
			n, _ := args[1].AsBigFloat().Int64()
			cost = int(n)
		}
		if cost > maxCost {
			return cty.DynamicVal, fmt.Errorf("the cost is at most %d", maxCost)
		}
		out, err := bcrypt.GenerateFromPassword([]byte(args[0].AsString()), cost)
		return cty.StringVal(string(out)), err
	},
})

var uuidv5 = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "namespace", Type: cty.String}, {Name: "name", Type: cty.String}},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		known := map[string]uuid.UUID{"dns": uuid.NameSpaceDNS, "url": uuid.NameSpaceURL, "oid": uuid.NameSpaceOID, "x500": uuid.NameSpaceX500}
		space, ok := known[args[0].AsString()]
		if !ok {
			var err error
			if space, err = uuid.Parse(args[0].AsString()); err != nil {
				return cty.DynamicVal, fmt.Errorf("namespace %q: must be dns, url, oid, x500 or a UUID", args[0].AsString())
			}
		}
		return cty.StringVal(uuid.NewSHA1(space, []byte(args[1].AsString())).String()), nil
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
