package otelobserve

import (
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
)

// endpoint is where a server is; the zero value is one that was not reached over HTTP.
type endpoint struct {
	address string
	port    int
}

func endpointOf(raw string) endpoint {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return endpoint{}
	}
	e := endpoint{address: u.Hostname()}
	e.port, _ = strconv.Atoi(u.Port())
	switch {
	case e.port != 0:
	case u.Scheme == "https":
		e.port = 443
	case u.Scheme == "http":
		e.port = 80
	}
	return e
}

// append adds the attributes of a server reached over HTTP.
func (e *endpoint) append(attrs []attribute.KeyValue) []attribute.KeyValue {
	if e.address == "" {
		return attrs
	}
	attrs = append(attrs, keyServerAddress.String(e.address), keyNetProtocol.String("http"))
	if e.port != 0 {
		attrs = append(attrs, keyServerPort.Int(e.port))
	}
	return attrs
}

// appendVersion adds what is known of the network once an answer has come.
func (e *endpoint) appendVersion(attrs []attribute.KeyValue, httpVersion string) []attribute.KeyValue {
	if e.address == "" {
		return attrs
	}
	transport := "tcp"
	if httpVersion == "3" {
		transport = "quic"
	}
	attrs = append(attrs, keyNetTransport.String(transport))
	return appendText(attrs, keyNetVersion, httpVersion)
}
