package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// A spec says where an upstream is: at a URL, or behind a command.
type spec struct {
	name    string
	url     string
	command []string
}

// A name is a part of tool names and ends at the first underscore there, so that no two
// tools get the same one.
var upstreamName = regexp.MustCompile(`^[A-Za-z0-9-]{1,32}$`)

// parseSpecs reads NAME=URL and NAME=COMMAND. A command is split at spaces, without a
// shell.
func parseSpecs(args []string) ([]spec, error) {
	if len(args) == 0 {
		return nil, errors.New("no upstream: give at least one NAME=URL or NAME=COMMAND")
	}
	var specs []spec
	taken := map[string]bool{}
	for _, arg := range args {
		s, err := parseSpec(arg)
		if err != nil {
			return nil, err
		}
		if taken[s.name] {
			return nil, fmt.Errorf("two upstreams are called %s", s.name)
		}
		taken[s.name] = true
		specs = append(specs, s)
	}
	return specs, nil
}

func parseSpec(arg string) (spec, error) {
	name, where, _ := strings.Cut(arg, "=")
	if !upstreamName.MatchString(name) {
		return spec{}, fmt.Errorf("%q: an upstream's name is up to 32 letters, digits and hyphens, followed by =", name)
	}
	if strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://") {
		if u, err := url.Parse(where); err != nil || u.Host == "" {
			return spec{}, fmt.Errorf("%s: not a URL of a server", name)
		}
		return spec{name: name, url: where}, nil
	}
	command := strings.Fields(where)
	if len(command) == 0 {
		return spec{}, fmt.Errorf("%s: neither a URL nor a command", name)
	}
	return spec{name: name, command: command}, nil
}
