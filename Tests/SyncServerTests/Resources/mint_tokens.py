#!/usr/bin/python3
"""Makes JSON Web Tokens with PyJWT, good ones and attacks, and prints them as one JSON object.

    mint_tokens.py ISSUER NOW      NOW in seconds since 1970
"""
import base64
import hashlib
import hmac
import json
import sys

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

issuer, now = sys.argv[1], int(sys.argv[2])


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value, size=None):
    return encoded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ec_key = ec.generate_private_key(ec.SECP256R1())
ed_key = ed25519.Ed25519PrivateKey.generate()
new_key = ed25519.Ed25519PrivateKey.generate()
other_rsa = rsa.generate_private_key(public_exponent=65537, key_size=2048)
other_ec = ec.generate_private_key(ec.SECP256R1())
secret = b"a secret of thirty-two bytes, ok"
raw = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def rsa_jwk(key, **more):
    public = key.public_key().public_numbers()
    return {"kty": "RSA", "n": number(public.n), "e": number(public.e), **more}


def ec_jwk(key, **more):
    public = key.public_key().public_numbers()
    return {"kty": "EC", "crv": "P-256", "x": number(public.x, 32), "y": number(public.y, 32), **more}


def short_key():
    """A key whose x begins with a zero byte, as one in 256 does."""
    while True:
        key = ec.generate_private_key(ec.SECP256R1())
        if key.public_key().public_numbers().x < 1 << 248:
            return key


def ed_jwk(key, **more):
    return {"kty": "OKP", "crv": "Ed25519", "x": encoded(key.public_key().public_bytes(*raw)), **more}


keys = [
    rsa_jwk(rsa_key, kid="r", use="sig", alg="RS256"),
    ec_jwk(ec_key, kid="e", key_ops=["verify"]),
    ed_jwk(ed_key, kid="d"),
]
# Coordinates without their leading zeros, and with one too many.
short_ec = short_key()
short_public = short_ec.public_key().public_numbers()
keys += [
    ec_jwk(short_ec, kid="short", x=number(short_public.x), y=number(short_public.y)),
    ec_jwk(short_ec, kid="long", x=number(short_public.x, 33), y=number(short_public.y, 33)),
]
oct_key = {"kty": "oct", "k": encoded(secret), "kid": "h"}

claims = {
    "iss": issuer, "sub": "ada", "aud": "ferry", "iat": now, "exp": now + 600,
    "ferry": {"list-7": "writer"},
}
signers = {"RS256": (rsa_key, "r"), "ES256": (ec_key, "e"), "EdDSA": (ed_key, "d")}


def sign(algorithm="ES256", key=None, header=None, drop=(), **changes):
    payload = {**claims, **changes}
    for name in drop:
        del payload[name]
    default, kid = signers.get(algorithm, (secret, "h"))
    headers = {"kid": kid, **(header or {})}
    headers = {name: value for name, value in headers.items() if value is not None}
    return jwt.encode(payload, key or default, algorithm=algorithm, headers=headers)


def by_hand(header, payload, signature=b""):
    """For what PyJWT refuses to make. Text is taken as it is."""
    parts = [part if isinstance(part, str) else json.dumps(part) for part in (header, payload)]
    body = ".".join(encoded(part.encode()) for part in parts)
    if callable(signature):
        signature = signature(body.encode())
    return body + "." + encoded(signature)


def ed_signed(header, payload):
    return by_hand(header, payload, ed_key.sign)


pem = rsa_key.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
der = rsa_key.public_key().public_bytes(
    serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def mac(key):
    return lambda body: hmac.new(key, body, hashlib.sha256).digest()


good = {
    "RS256": sign("RS256"), "ES256": sign("ES256"), "EdDSA": sign("EdDSA"),
    "HS256": sign("HS256"), "no kid": sign("EdDSA", header={"kid": None}),
    "audiences": sign(aud=["x", "ferry"]), "access token": sign(header={"typ": "at+JWT"}),
    "fractions": sign(exp=now + 600.0, nbf=now - 0.5), "within the leeway": sign(nbf=now + 59),
    "other claims": sign(ferry={"list-7": "writer"}, nonce={"deep": [1, {"a": None}]}),
    "a key with a short coordinate": sign("ES256", short_ec, header={"kid": "short"}),
    "a key with long coordinates": sign("ES256", short_ec, header={"kid": "long"}),
    "grants as text": sign(ferry="list-7=writer"),
    "grants as words": sign(ferry=" list-*=reader, list-7=writer,list-7=reader "),
    "grants as texts": sign(ferry=["list-9=reader", "list-7=writer list-8=reader"]),
    "another jwk inside": sign(header={"jwk": ec_jwk(other_ec), "jku": "https://evil.example"}),
}
head, payload, signature = good["ES256"].split(".")
flipped = bytearray(base64.urlsafe_b64decode(signature + "=="))
flipped[5] ^= 1
alg_none = {"alg": "none", "typ": "JWT"}
forged = {
    "none": by_hand(alg_none, claims), "None": by_hand({"alg": "None"}, claims),
    "none with a kid": by_hand({"alg": "none", "kid": "r"}, claims),
    "none with a signature": by_hand(alg_none, claims, b"signature"),
    "no alg": by_hand({"typ": "JWT"}, claims), "no signature": head + "." + payload + ".",
    "HS256 by the RSA key as PEM": by_hand({"alg": "HS256", "kid": "r"}, claims, mac(pem)),
    "HS256 by the RSA key as DER": by_hand({"alg": "HS256", "kid": "r"}, claims, mac(der)),
    "HS256 by the modulus": by_hand(
        {"alg": "HS256", "kid": "r"}, claims, mac(base64.urlsafe_b64decode(keys[0]["n"] + "=="))),
    "HS256 by nothing": by_hand({"alg": "HS256"}, claims, mac(b"")),
    "another RSA key": sign("RS256", other_rsa), "another EC key": sign("ES256", other_ec),
    "a key inside": sign("ES256", other_ec, header={"jwk": ec_jwk(other_ec), "kid": None}),
    "a key inside under our kid": sign("ES256", other_ec, header={"jwk": ec_jwk(other_ec, kid="e")}),
    "an unknown kid": sign("ES256", header={"kid": "x"}),
    "the kid of another key": sign("ES256", header={"kid": "d"}),
    "a path as kid": sign("ES256", header={"kid": "../../dev/null"}),
    "EdDSA by the type of EC": by_hand({"alg": "EdDSA", "kid": "e"}, claims, ed_key.sign),
    "RS512": sign("RS512", rsa_key, header={"kid": "r"}),
    "PS256": sign("PS256", rsa_key, header={"kid": "r"}),
    "another payload": head + "." + encoded(json.dumps({**claims, "sub": "eve"}).encode())
    + "." + signature,
    "a flipped bit": head + "." + payload + "." + encoded(bytes(flipped)),
    "zeros": head + "." + payload + "." + encoded(bytes(64)),
    "a signature in DER": head + "." + payload + "." + encoded(
        ec_key.sign((head + "." + payload).encode(), ec.ECDSA(__import__(
            "cryptography.hazmat.primitives.hashes", fromlist=["SHA256"]).SHA256()))),
    "crit": ed_signed({"alg": "EdDSA", "kid": "d", "crit": ["exp"]}, claims),
    "an empty crit": ed_signed({"alg": "EdDSA", "kid": "d", "crit": []}, claims),
    "two algs": ed_signed('{"alg":"none","alg":"EdDSA","kid":"d"}', claims),
    "a list as header": ed_signed("[]", claims), "more after the header": ed_signed("{} {}", claims),
    "another typ": ed_signed({"alg": "EdDSA", "kid": "d", "typ": "JWE"}, claims),
    "too long": sign("EdDSA", junk="x" * 17000),
    "unused bits": good["EdDSA"][:-1] + chr(ord(good["EdDSA"][-1]) + 1),
}
text = json.dumps(claims)
refused = {
    "expired": sign(exp=now - 61), "expired this moment": sign(exp=now - 60),
    "no exp": sign(drop=["exp"]), "exp as text": ed_signed(
        {"alg": "EdDSA", "kid": "d"}, {**claims, "exp": str(now + 600)}),
    "exp null": sign(exp=None), "exp far away": sign(exp=10 ** 15), "exp huge": sign(exp=1e300),
    "not yet": sign(nbf=now + 61), "issued in the future": sign(iat=now + 61),
    "another issuer": sign(iss=issuer + "/"), "no issuer": sign(drop=["iss"]),
    "an issuer by case": sign(iss=issuer.upper()),
    "another audience": sign(aud="x"), "other audiences": sign(aud=["x", "y"]),
    "no audience": sign(drop=["aud"]), "an empty audience": sign(aud=[]),
    "no subject": sign(drop=["sub"]), "an empty subject": sign(sub=""),
    "a long subject": sign(sub="a" * 500), "a number as subject": ed_signed(
        {"alg": "EdDSA", "kid": "d"}, {**claims, "sub": 7}),
    "two subjects": ed_signed({"alg": "EdDSA", "kid": "d"}, text[:-1] + ',"sub":"eve"}'),
    "two of a kind below": ed_signed(
        {"alg": "EdDSA", "kid": "d"}, text[:-1] + ',"x":{"a":1,"a":2}}'),
    "two grants": ed_signed({"alg": "EdDSA", "kid": "d"}, text[:-1] + ',"ferry":{"*":"admin"}}'),
    "an unknown role": sign(ferry={"list-7": "owner"}), "grants as text": sign(ferry="admin"),
    "grants as no text": sign(ferry=""), "grants as no texts": sign(ferry=[]),
    "grants as commas": sign(ferry=" , ,"), "grants as null": sign(ferry=None),
    "grants as a number": sign(ferry=7), "grants as numbers": sign(ferry=[7]),
    "grants as objects": sign(ferry=[{"list-7": "writer"}]),
    "a word without a role": sign(ferry="list-7=writer,notes"),
    "a word with two roles": sign(ferry="list-7=writer=admin"),
    "a word with an unknown role": sign(ferry=["list-7=writer", "notes=owner"]),
    "a word with a bad name": sign(ferry="list-7=writer,*x=reader"),
    "a word without a name": sign(ferry="=writer"),
    "words without end": sign(ferry=",".join(f"s{n}=reader" for n in range(101))),
    "grants as JSON in a text": sign(ferry='{"list-7":"writer"}'),
    "a bad name": sign(ferry={"li st": "reader"}), "no grants at all": sign(ferry={}),
    "claims that end early": ed_signed({"alg": "EdDSA", "kid": "d"}, text[:-1]),
    "claims as a list": ed_signed({"alg": "EdDSA", "kid": "d"}, "[]"),
}
grantless = {"no claim": sign(drop=["ferry"])}

print(json.dumps({
    "keys": json.dumps({"keys": keys}), "secrets": json.dumps({"keys": keys + [oct_key]}),
    "rotated": json.dumps({"keys": [ed_jwk(new_key, kid="new")]}),
    "good": good, "forged": forged, "refused": refused, "grantless": grantless,
    "rotatedToken": sign("EdDSA", new_key, header={"kid": "new"}),
}))
