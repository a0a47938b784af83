// Command agent stands for a drover in tests: it says what it was started with, and runs until it is told to end.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	data, err := os.ReadFile("/etc/drover/user-data.hcl")
	fmt.Println(os.Args[1:], string(data), err)
	if string(data) != "broken" {
		<-c
	}
}
