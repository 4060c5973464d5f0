import FerryTestSupport
import Synchronization
import Testing

@testable import FerryNetworking

@Suite("The encoding of forms", .hangLimit)
struct MultipartEncodingTests {
  private func text(_ form: MultipartForm) throws -> (body: String, boundary: String) {
    let encoding = MultipartEncoding(form) { 0 }
    let bytes = try encoding.parts().flatMap { part in
      if case .bytes(let bytes) = part { bytes } else { Array("<file>".utf8) }
    }
    return (String(decoding: bytes, as: UTF8.self), encoding.boundary)
  }

  @Test("fields and files follow each other, each with its head")
  func parts() throws {
    var form = MultipartForm()
    form.add("title", "Grüße")
    form.addFile("photo", path: "/tmp/a b.jpg", contentType: "image/jpeg")
    form.addFile("photo", bytes: [0x41], fileName: "x")
    let (body, mark) = try text(form)
    #expect(
      body == """
        --\(mark)\r
        Content-Disposition: form-data; name="title"\r
        \r
        Grüße\r
        --\(mark)\r
        Content-Disposition: form-data; name="photo"; filename="a b.jpg"\r
        Content-Type: image/jpeg\r
        \r
        <file>\r
        --\(mark)\r
        Content-Disposition: form-data; name="photo"; filename="x"\r
        Content-Type: application/octet-stream\r
        \r
        A\r
        --\(mark)--\r

        """)
  }

  @Test(
    "a name cannot leave its quotes",
    arguments: [
      ("a\"; filename=\"b", "a%22; filename=%22b"), ("a\r\nX: y", "a%0D%0AX: y"),
      ("\r\"\n", "%0D%22%0A"), ("ü%\\", "ü%\\"),
    ])
  func names(name: String, escaped: String) { #expect(MultipartEncoding.escape(name) == escaped) }

  @Test("a media type cannot add a field", arguments: ["a/b\r\nX: y", "a\n", "ä/b"])
  func mediaTypes(type: String) {
    var form = MultipartForm()
    form.addFile("f", bytes: [], fileName: "f", contentType: type)
    #expect(throws: NetworkError.self) { try MultipartEncoding(form) { 0 }.parts() }
  }

  @Test("a boundary that the content has is drawn again")
  func boundary() {
    let first = MultipartEncoding(MultipartForm()) { 0 }.boundary
    var form = MultipartForm()
    form.add("a", "x\r\n--\(first)--\r\n")
    let draws = Mutex(0)
    let encoding = MultipartEncoding(form) {
      draws.withLock { draws in
        draws += 1
        return draws > 32 ? .max : 0
      }
    }
    #expect(encoding.boundary != first && draws.withLock { $0 } == 64)
    #expect(encoding.boundary.utf8.count <= 70)
  }

  @Test("a form without parts is valid, too")
  func empty() throws {
    let (body, mark) = try text(MultipartForm())
    #expect(body == "--\(mark)--\r\n")
  }
}
