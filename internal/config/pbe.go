package config

import (
	"crypto/cipher"
	"crypto/des"
	"crypto/md5"
	"encoding/base64"
	"errors"
)

// PBEWithMD5AndDES is what Jasypt encrypts with by default: the key is derived from the password by
// PBKDF1 (PKCS #5 1.5, RFC 8018 section 5.1) with MD5, the salt stands before the ciphertext.
const (
	pbeAlgorithm  = "PBEWithMD5AndDES"
	pbeIterations = 1000
	pbeSaltBytes  = 8
)

var errDecrypt = errors.New("cannot be decrypted: the password or the value is wrong")

// decryptPBE returns the text behind ENC(value).
func decryptPBE(value, password string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(data) < pbeSaltBytes+des.BlockSize || len(data)%des.BlockSize != 0 {
		return "", errDecrypt
	}
	key := md5.Sum(append([]byte(password), data[:pbeSaltBytes]...))
	for range pbeIterations - 1 {
		key = md5.Sum(key[:])
	}
	block, err := des.NewCipher(key[:des.BlockSize])
	if err != nil {
		return "", err
	}
	text := data[pbeSaltBytes:]
	cipher.NewCBCDecrypter(block, key[des.BlockSize:]).CryptBlocks(text, text)
	pad := int(text[len(text)-1])
	if pad < 1 || pad > des.BlockSize {
		return "", errDecrypt
	}
	for _, b := range text[len(text)-pad:] {
		if int(b) != pad {
			return "", errDecrypt
		}
	}
	return string(text[:len(text)-pad]), nil
}
