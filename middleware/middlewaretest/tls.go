package middlewaretest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"time"
)

// secure puts TLS around a listener, makes HTTP/2 the server's only protocol
// above it, and prepares the client's side.
func (s *Server) secure(l net.Listener) (net.Listener, error) {
	cert, pool, err := newCertificate()
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	s.tls = &tls.Config{RootCAs: pool}
	return useFrames(s.http, l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}), nil
}

// newClient makes a client with connections of its own.
func (s *Server) newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     s.TLS(),
		ForceAttemptHTTP2:   s.opts.HTTP2,
		MaxIdleConnsPerHost: 64,
	}}
}

// newCertificate makes a certificate for this machine's own names, and the pool
// that trusts it.
func newCertificate() (tls.Certificate, *x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, pool, nil
}
