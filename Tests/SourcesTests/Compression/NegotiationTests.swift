import FerryTestSupport
import Testing

@testable import FerryCompression

@Suite("Negotiation of a content coding", .hangLimit)
struct NegotiationTests {
  @Test(
    "the Accept-Encoding header selects the coding",
    arguments: [
      (nil, nil),
      ("", nil),
      ("gzip", .gzip),
      ("zstd", .zstd),
      ("gzip, zstd", .zstd),
      ("gzip, deflate, br, zstd", .zstd),
      ("GZip", .gzip),
      ("x-gzip", .gzip),
      ("br", nil),
      ("*", .zstd),
      ("*;q=0", nil),
      ("zstd;q=0, *", .gzip),
      ("zstd;q=0, gzip;q=0, *", nil),
      ("gzip;q=1.0, zstd;q=0.5", .gzip),
      ("gzip;q=0.5, zstd;q=0.501", .zstd),
      ("gzip ; Q=0.5 , zstd ;\tq=0.1", .gzip),
      ("gzip;q=0", nil),
      ("gzip;q=0.000", nil),
      ("gzip;q=0.001", .gzip),
      ("identity, gzip;q=0.5", nil),
      ("identity;q=0.5, gzip;q=0.5", .gzip),
      ("identity;q=0, gzip", .gzip),
      ("gzip;q=2", nil),
      ("gzip;q=1.001", nil),
      ("gzip;q=0.1234", nil),
      ("gzip;q=", nil),
      ("gzip;q=0x", nil),
      ("gzip;q=0.5;q=1, zstd;level=3", nil),
      (",, ,gzip,", .gzip),
      (";q=1", nil),
    ] as [(String?, ContentCoding?)])
  func table(header: String?, expected: ContentCoding?) {
    #expect(ContentCoding.negotiate(acceptEncoding: header) == expected)
  }

  @Test("the announced list names each coding in order of preference")
  func announcement() {
    #expect(ContentCoding.acceptEncoding == "zstd, gzip")
    #expect(ContentCoding.negotiate(acceptEncoding: ContentCoding.acceptEncoding) == .zstd)
  }
}
