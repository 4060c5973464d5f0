import FerryNetworking
import FerryTestSupport
import Foundation
import Testing

@testable import FerryCaching

@Suite("Envelopes of responses", .hangLimit)
struct EnvelopeTests {
  private static let coded = Envelope(payload: "data", code: "code", success: ["0", "ok", "true"])
  private static let marked = Envelope(
    payload: "result.items", code: "error.code", message: "error.text", error: "error")

  @Test(
    "an error is found by its code, be it a number, a text or a truth value",
    arguments: [
      (#"{"code": 0, "data": 1}"#, nil), (#"{"code": "ok"}"#, nil), (#"{"code": true}"#, nil),
      (#"{"code": 12, "message": "no"}"#, "12 no"), (#"{"code": "E1"}"#, "E1 -"),
      (#"{"code": false, "message": 7}"#, "false 7"), (#"{"code": 1.5}"#, "1.5 -"),
      (#"{"data": 1}"#, nil), ("[1]", nil), ("nonsense", nil), (#"{"code": null}"#, nil),
      (#"{"code": {"a": 1}}"#, nil),
    ] as [(String, String?)])
  func codes(body: String, failure: String?) {
    let found = Self.coded.failure(in: Array(body.utf8))
    #expect(found.map { "\($0.code) \($0.message ?? "-")" } == failure)
  }

  @Test(
    "an error is found by a member that only errors have",
    arguments: [
      (#"{"error": null, "result": {"items": []}}"#, nil), (#"{"result": {}}"#, nil),
      (#"{"error": {"code": 7, "text": "full"}}"#, "7 full"), (#"{"error": "down"}"#, " -"),
    ] as [(String, String?)])
  func members(body: String, failure: String?) {
    let found = Self.marked.failure(in: Array(body.utf8))
    #expect(found.map { "\($0.code) \($0.message ?? "-")" } == failure)
  }

  private func items<Value: Decodable>(
    _ type: Value.Type, _ body: String, _ envelope: Envelope = Self.coded,
    _ decoder: JSONDecoder = JSONDecoder()
  ) throws -> Value {
    try decoder.decode(
      EnvelopeReading<Value>.self, from: Data(body.utf8), configuration: envelope
    ).value.get()
  }

  @Test("a value is unwrapped with all digits of its numbers")
  func values() throws {
    #expect(
      try items([Int64].self, #"{"code":0,"data":[9223372036854775807]}"#) == [.max])
    #expect(try items([Int].self, #"{"result":{"items":[1,2]}}"#, Self.marked) == [1, 2])
    #expect(try items(Int?.self, #"{"code":0}"#) == nil)
    #expect(try items(Int?.self, #"{"code":0,"data":null}"#) == nil)
    #expect(try items([String: Int].self, #"{"a":1}"#, Envelope(payload: nil)) == ["a": 1])
    #expect(throws: DecodingError.self) { try items(Int.self, #"{"code":0}"#) }
    #expect(throws: DecodingError.self) { try items(Int.self, "[1]") }
    #expect(throws: Envelope.Failure.self) { try items(Int.self, #"{"code":3,"data":1}"#) }
  }

  @Test("the names of an envelope are those of the server, whatever a decoder's strategy")
  func snakeCase() throws {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    let envelope = Envelope(payload: "result_data", code: "error_code")
    struct Person: Decodable, Equatable { var firstName: String }
    #expect(
      try items(
        Person.self, #"{"error_code":0,"result_data":{"first_name":"Ada"}}"#, envelope, decoder)
        == Person(firstName: "Ada"))
  }
}
