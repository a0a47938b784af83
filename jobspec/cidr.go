package jobspec

import (
	"fmt"
	"math/big"
	"net"
	"net/netip"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

var prefixParam = function.Parameter{Name: "prefix", Type: cty.String}

func numberParam(name string) function.Parameter {
	return function.Parameter{Name: name, Type: cty.Number}
}

// cidrHost is the address with a number in a network; negative numbers count from its end.
var cidrHost = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam, numberParam("hostnum")}, Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parsePrefix(args[0])
		if err != nil {
			return cty.DynamicVal, err
		}
		n, _ := args[1].AsBigFloat().Int(nil)
		size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		if n.Sign() < 0 {
			n.Add(n, size)
		}
		if n.Sign() < 0 || n.Cmp(size) >= 0 {
			return cty.DynamicVal, fmt.Errorf("%s has no host number %s", p, args[1].AsBigFloat())
		}
		return cty.StringVal(plus(p.Addr(), n).String()), nil
	},
})

// cidrNetmask writes an IPv4 network's mask.
var cidrNetmask = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam}, Type: function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parsePrefix(args[0])
		if err == nil && !p.Addr().Is4() {
			err = fmt.Errorf("%s: only IPv4 networks have a mask", p)
		}
		if err != nil {
			return cty.DynamicVal, err
		}
		return cty.StringVal(net.IP(net.CIDRMask(p.Bits(), 32)).String()), nil
	},
})

// cidrSubnet is the subnet with a number, when a network is divided by newbits more bits.
var cidrSubnet = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam, numberParam("newbits"), numberParam("netnum")},
	Type:   function.StaticReturnType(cty.String),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parsePrefix(args[0])
		if err != nil {
			return cty.DynamicVal, err
		}
		var bits int
		if err := gocty.FromCtyValue(args[1], &bits); err != nil {
			return cty.DynamicVal, err
		}
		n, _ := args[2].AsBigFloat().Int(nil)
		length := p.Bits() + bits
		if bits < 0 || length > p.Addr().BitLen() {
			return cty.DynamicVal, fmt.Errorf("%s can't be extended by %d bits", p, bits)
		}
		if n.Sign() < 0 || n.BitLen() > bits {
			return cty.DynamicVal, fmt.Errorf("there is no subnet %s of %s with %d more bits", n, p, bits)
		}
		n.Lsh(n, uint(p.Addr().BitLen()-length))
		return cty.StringVal(netip.PrefixFrom(plus(p.Addr(), n), length).String()), nil
	},
})

// cidrSubnets are subnets of the given sizes, one after the other.
var cidrSubnets = function.New(&function.Spec{
	Params: []function.Parameter{prefixParam}, VarParam: &function.Parameter{Name: "newbits", Type: cty.Number},
	Type: function.StaticReturnType(cty.List(cty.String)),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		p, err := parsePrefix(args[0])
		if err != nil {
			return cty.DynamicVal, err
		}
		next := new(big.Int)
		end := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-p.Bits()))
		list := []cty.Value{}
		for _, a := range args[1:] {
			var bits int
			if err := gocty.FromCtyValue(a, &bits); err != nil {
				return cty.DynamicVal, err
			}
			length := p.Bits() + bits
			if bits < 1 || length > p.Addr().BitLen() {
				return cty.DynamicVal, fmt.Errorf("%s can't be extended by %d bits", p, bits)
			}
			size := new(big.Int).Lsh(big.NewInt(1), uint(p.Addr().BitLen()-length))
			if rest := new(big.Int).Mod(next, size); rest.Sign() != 0 { // begin at a multiple of its size
				next.Add(next, size).Sub(next, rest)
			}
			if new(big.Int).Add(next, size).Cmp(end) > 0 {
				return cty.DynamicVal, fmt.Errorf("%s has no room for that many subnets", p)
			}
			list = append(list, cty.StringVal(netip.PrefixFrom(plus(p.Addr(), next), length).String()))
			next.Add(next, size)
		}
		if len(list) == 0 {
			return cty.ListValEmpty(cty.String), nil
		}
		return cty.ListVal(list), nil
	},
})

func parsePrefix(v cty.Value) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(v.AsString())
	return p.Masked(), err
}

// plus adds n to an address; the sum must be one.
func plus(a netip.Addr, n *big.Int) netip.Addr {
	b := a.AsSlice()
	new(big.Int).Add(new(big.Int).SetBytes(b), n).FillBytes(b)
	sum, _ := netip.AddrFromSlice(b)
	return sum
}
