module hopwire

go 1.26
