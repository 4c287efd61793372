module github.com/surecall/surecall

go 1.26.8

require (
	github.com/modelcontextprotocol/go-sdk v1.8.0 // indirect
	github.com/sony/gobreaker/v2 v2.4.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
