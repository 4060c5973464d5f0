#!/usr/bin/python3
"""Makes a key that signs tokens, and prints it as one JSON object: {"private": PEM, "public": PEM}.

    make_signing_key.py rsa|p256

The x of a key of P-256 begins with a zero byte, as one in 256 does: issuers leave that byte out.
"""
import json
import sys

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa


def p256():
    while True:
        key = ec.generate_private_key(ec.SECP256R1())
        if key.public_key().public_numbers().x < 1 << 248:
            return key


def rsa2048():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


key = {"rsa": rsa2048, "p256": p256}[sys.argv[1]]()
private = key.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.NoEncryption())
public = key.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
print(json.dumps({"private": private.decode(), "public": public.decode()}))
