import FerryCompression
import FerryTestSupport
import Testing

@testable import FerryHTTPServer

@Suite("Codings of responses", .hangLimit)
struct ResponseNegotiationTests {
  static let content = [UInt8](repeating: UInt8(ascii: "x"), count: 1024)

  func response(_ headers: HTTPHeaders = [:], count: Int = 1024) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: headers, body: .bytes(Array(Self.content.prefix(count))),
      compressible: true)
  }

  func bytes(_ response: HTTPResponse) -> [UInt8] {
    if case .bytes(let bytes) = response.body { bytes } else { [] }
  }

  @Test("a large body is sent in the accepted coding", arguments: ContentCoding.allCases)
  func coded(coding: ContentCoding) throws {
    let coded = response().negotiated(acceptEncoding: coding.rawValue)
    #expect(coded.headers["Content-Encoding"] == coding.rawValue)
    #expect(coded.headers["Vary"] == "Accept-Encoding")
    #expect(coded.headers["Accept-Encoding"] == "zstd, gzip")
    #expect(try coding.decompress(bytes(coded), limit: 1024) == Self.content)
  }

  @Test("an uncompressed answer of a compressible body has the Vary header too")
  func identity() {
    let plain = response(["Vary": "Origin"]).negotiated(acceptEncoding: nil)
    #expect(plain.headers["Content-Encoding"] == nil)
    #expect(plain.headers["Vary"] == "Origin, Accept-Encoding")
    #expect(bytes(plain) == Self.content)
  }

  @Test("small, encoded and incompressible bodies are sent unchanged")
  func untouched() {
    var incompressible = response()
    incompressible.compressible = false
    let untouched = [
      response(count: 1023), response(["Content-Encoding": "br"]), incompressible,
    ]
    for response in untouched {
      let sent = response.negotiated(acceptEncoding: "zstd")
      #expect(sent.headers["Content-Encoding"] == response.headers["Content-Encoding"])
      #expect(sent.headers["Vary"] == nil)
      #expect(bytes(sent) == bytes(response))
    }
  }

  @Test("a strong tag becomes weak with a coding")
  func tags() {
    let tagged = response(["ETag": "\"a\""])
    #expect(tagged.negotiated(acceptEncoding: "zstd").headers["ETag"] == "W/\"a\"")
    #expect(tagged.negotiated(acceptEncoding: nil).headers["ETag"] == "\"a\"")
  }

  @Test("header names compare without regard to case")
  func headers() {
    var headers: HTTPHeaders = ["A": "1"]
    headers.append("a", "2")
    #expect(headers["a"] == "1")
    #expect(headers.values(of: "A") == ["1", "2"])
    #expect(headers.list(of: "A") == "1, 2")
    headers["a"] = "3"
    #expect(headers.fields == [.init(name: "a", value: "3")])
    headers["A"] = nil
    #expect(headers.fields.isEmpty)
    #expect(headers.list(of: "A") == nil)
  }
}
