import FerryCryptography
import FerryTestSupport
import Testing

@testable import FerryMissionServer

/// The published examples of AWS Signature Version 4.
@Suite("Signatures of requests", .hangLimit)
struct AWSSignatureTests {
  private static let host = "examplebucket.s3.amazonaws.com"
  /// 2013-05-24T00:00:00Z
  private static let time: Int64 = 1_369_353_600

  private static let example = AWSSignature(
    AWSCredentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    region: "us-east-1")

  struct Example: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var request: AWSSignature.Request
    var payload = ""
    var names: String
    var signature: String
  }

  /// "Signature Calculations for the Authorization Header" of the Amazon S3 API Reference.
  static let examples = [
    Example(
      testDescription: "GET of a range",
      request: AWSSignature.Request(
        method: "GET", host: host, path: "/test.txt", headers: [("Range", "bytes=0-9")]),
      names: "host;range;x-amz-content-sha256;x-amz-date",
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      testDescription: "PUT of an object",
      request: AWSSignature.Request(
        method: "PUT", host: host,
        path: AWSSignature.percentEncoded("/test$file.text", keepsSlashes: true),
        headers: [
          ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ]),
      payload: "Welcome to Amazon S3.",
      names: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      testDescription: "GET of a setting",
      request: AWSSignature.Request(
        method: "GET", host: host, path: "/", query: [("lifecycle", "")]),
      names: "host;x-amz-content-sha256;x-amz-date",
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      testDescription: "list of objects",
      request: AWSSignature.Request(
        method: "GET", host: host, path: "/", query: [("prefix", "J"), ("max-keys", "2")]),
      names: "host;x-amz-content-sha256;x-amz-date",
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test("the examples of Amazon's reference have their signatures", arguments: examples)
  func signs(_ example: Example) throws {
    let headers = Self.example.headers(
      of: example.request,
      payloadHash: Hexadecimal.text(SHA256.digest(of: Array(example.payload.utf8))), at: Self.time)
    let authorization = try #require(headers.first { $0.name == "Authorization" }).value
    #expect(
      authorization == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/"
        + "aws4_request, SignedHeaders=\(example.names), Signature=\(example.signature)")
    #expect(headers.first { $0.name == "X-Amz-Date" }?.value == "20130524T000000Z")
  }

  /// `get-vanilla` and `get-vanilla-query-order-key-case` of the AWS test suite for signatures.
  @Test("the requests of the test suite for any service have their signatures")
  func suite() throws {
    let signature = AWSSignature(
      AWSCredentials(
        accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
      region: "us-east-1", service: "service")
    var request = AWSSignature.Request(method: "GET", host: "example.amazonaws.com", path: "/")
    func signed() -> String? {
      signature.headers(of: request, payloadHash: AWSSignature.emptyHash, at: 1_440_938_160)
        .first { $0.name == "Authorization" }?.value.suffix(64).description
    }
    #expect(signed() == "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
    request.query = [("Param2", "value2"), ("Param1", "value1")]
    #expect(signed() == "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500")
  }

  /// "Authenticating Requests: Using Query Parameters" of the same reference.
  @Test("an address that is valid for a day has the signature of Amazon's reference")
  func presigned() {
    let query = Self.example.presignedQuery(
      of: AWSSignature.Request(method: "GET", host: Self.host, path: "/test.txt"), at: Self.time,
      validity: 86_400)
    #expect(
      AWSSignature.encoded(query)
        == "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"
        + "%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400"
        + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        + "&X-Amz-SignedHeaders=host")
  }

  @Test("a session's token is signed, and the key is never sent")
  func token() {
    let credentials = AWSCredentials(
      accessKey: "A", secretKey: "secret-part", sessionToken: "token")
    let headers = AWSSignature(credentials, region: "r").headers(
      of: AWSSignature.Request(method: "GET", host: "h", path: "/"),
      payloadHash: AWSSignature.emptyHash, at: 0)
    #expect(headers.contains { $0.name == "X-Amz-Security-Token" && $0.value == "token" })
    #expect(headers.last?.value.contains("x-amz-security-token") == true)
    #expect(!headers.contains { $0.value.contains("secret-part") })
  }

  @Test("a file of credentials counts by its default profile, and without a key it counts as none")
  func credentials() {
    let file = """
      # a comment
      [other]
      aws_access_key_id = X
      [default]
      AWS_ACCESS_KEY_ID=A
      aws_secret_access_key = s+e/c=
      """
    #expect(AWSCredentials(file: file) == AWSCredentials(accessKey: "A", secretKey: "s+e/c="))
    #expect(AWSCredentials(file: "[other]\naws_access_key_id = X") == nil)
    #expect(
      AWSCredentials(environment: ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": ""]) == nil)
  }
}
