package interop

import (
	"crypto/x509"
	"log"
	"os"
)

// authority is the only one whose certificates the client takes: the contract's.
func authority() *x509.CertPool {
	pem, err := os.ReadFile("/certs/ca.pem")
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		log.Fatal("no certificate in /certs/ca.pem")
	}
	return pool
}
