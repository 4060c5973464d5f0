import FerryTestSupport
import Testing

@testable import FerryPatches

/// The conversation with a host, event by event.
@Suite("A call of a patch", .hangLimit)
struct PatchCallTests {
  private func call(_ change: (inout PatchLimits) -> Void = { _ in }) -> PatchCall {
    var limits = PatchLimits()
    change(&limits)
    return PatchCall(services: ["clock", "stock.count"], limits: limits)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  private func failure(_ text: String) -> PatchFailure? {
    var call = call()
    guard case .finish(.failure(let failure)) = call.handle(.received(bytes(text))).last else {
      return nil
    }
    return failure
  }

  @Test("a script and its input are one line each, whatever they contain")
  func opening() {
    let opening = PatchCall.opening(script: "a\n\"b\"\u{2028}\0", input: bytes("[1]"))
    #expect(opening == bytes("\"a\\n\\\"b\\\"\u{2028}\\u0000\"\n[1]\n"))
  }

  @Test("a result that arrives in pieces ends the call, and nothing counts after it")
  func result() {
    var call = call()
    #expect(call.handle(.received(bytes("{\"resu"))) == [])
    #expect(call.handle(.received(bytes("lt\":{\"a\":[1]}"))) == [])
    let last = call.handle(.received(bytes("}\n{\"thrown\":\"late\"}\n")))
    #expect(last == [.finish(.success(bytes("{\"a\":[1]}")))])
    #expect(call.handle(.ended(.exited(0))) == [] && call.handle(.deadline) == [])
  }

  @Test("a granted service is called, and its answer or error goes to the script")
  func services() {
    var call = call()
    let first = call.handle(
      .received(bytes(#"{"call":1,"service":"clock","arguments":{"a":1}}"# + "\n")))
    #expect(first == [.call(1, service: "clock", arguments: bytes(#"{"a":1}"#))])
    let answered = call.handle(.answered(1, .success(bytes("[2]"))))
    #expect(answered == [.send(bytes("[1,true,[2]]\n"))])
    // Answered already.
    #expect(call.handle(.answered(1, .success(bytes("[3]")))) == [])
    _ = call.handle(.received(bytes(#"{"call":2,"service":"clock","arguments":null}"# + "\n")))
    let failed = call.handle(.answered(2, .failure(.init(text: "no \"clock\"\n"))))
    #expect(failed == [.send(bytes("[2,false,\"no \\\"clock\\\"\\n\"]\n"))])
    _ = call.handle(.received(bytes(#"{"call":3,"service":"clock","arguments":null}"# + "\n")))
    guard
      case .send(let inexact) = call.handle(.answered(3, .success(bytes("9007199254740993"))))
        .first
    else {
      Issue.record("no answer")
      return
    }
    #expect(String(decoding: inexact, as: UTF8.self).hasPrefix("[3,false,\"9007199254740993 is"))
  }

  @Test("a service that is not granted is never called, and the script gets an error")
  func notGranted() {
    var call = call()
    for (number, name) in ["files.delete", "Clock", "clock ", "__proto__", ""].enumerated() {
      let effects = call.handle(
        .received(bytes(#"{"call":\#(number),"service":"\#(name)","arguments":0}"# + "\n")))
      #expect(
        effects == [.send(bytes("[\(number),false,\"service \(name) is not granted\"]\n"))])
    }
  }

  @Test("a flood of output, or of service calls, ends the call")
  func floods() {
    var flooded = call { $0.outputBytes = 100 }
    #expect(flooded.handle(.received([UInt8](repeating: 0x20, count: 100))) == [])
    #expect(flooded.handle(.received([0x20])) == [.finish(.failure(.outputTooLarge))])
    var busy = call { $0.serviceCalls = 3 }
    let lines = (1...4).map { #"{"call":\#($0),"service":"clock","arguments":0}"# + "\n" }
    let effects = busy.handle(.received(bytes(lines.joined())))
    #expect(effects.count == 4)
    #expect(effects.last == .finish(.failure(.tooManyServiceCalls)))
  }

  @Test("a line that is none ends the call")
  func malformed() {
    let deep = String(repeating: "[", count: 70) + String(repeating: "]", count: 70)
    for line in [
      "", "{}", "hello", "[]", #"{"result":1,"result":2}"#, #"{"result":1,"thrown":"x"}"#,
      #"{"result":}"#, #"{"result":1}}"#, #"{"result":{"a":1,"a":2}}"#, #"{"result":"\ud800"}"#,
      #"{"result":\#(deep)}"#, #"{"call":1,"service":"clock"}"#,
      #"{"call":"1","service":"clock","arguments":0}"#,
      #"{"thrown":5}"#, #"{"other":1}"#, "{\"result\":\"\u{1}\"}",
    ] {
      guard case .hostEnded = failure(line + "\n") else {
        Issue.record("\(line): \(String(describing: failure(line + "\n")))")
        continue
      }
    }
    guard
      case .hostEnded = failure(
        #"{"call":1,"service":"clock","arguments":0}"# + "\n"
          + #"{"call":1,"service":"clock","arguments":0}"# + "\n")
    else {
      Issue.record("two calls with one number")
      return
    }
  }

  @Test("the end of a host is explained by its status")
  func ends() {
    for (end, expected) in [
      (.exited(3), .memoryUsedUp), (.exited(4), .timeUsedUp),
      (.exited(5), .notConfined("the host gave no reason")),
      (.exited(0), .hostEnded("exit code 0")), (.killed(9), .hostEnded("signal 9")),
    ] as [(PatchCall.HostEnd, PatchFailure)] {
      var call = call()
      #expect(call.handle(.ended(end)) == [.finish(.failure(expected))])
    }
    var late = call()
    #expect(late.handle(.deadline) == [.finish(.failure(.timeUsedUp))])
    #expect(failure("{\"refused\":\"no seccomp\"}\n") == .notConfined("no seccomp"))
  }

  @Test("a thrown text is shown without control characters, and not without end")
  func thrown() {
    #expect(failure("{\"thrown\":\"a\\u001b[2J\\nb\"}\n") == .threw("a [2J b"))
    let long = String(repeating: "x", count: 5_000)
    #expect(failure("{\"thrown\":\"\(long)\"}\n") == .threw(String(long.prefix(500))))
  }

  @Test("an integer that JavaScript would change is found, in numbers only")
  func exactness() {
    for json in [
      "9007199254740991", "-9007199254740991", #""9007199254740993""#, "1e300", "0.1",
      #"{"9007199254740993":1}"#, #"["\"9007199254740993",2]"#, "[0,-0,12.5]", "null",
    ] {
      #expect(PatchJSON.fault(inInput: bytes(json)) == nil, "\(json)")
    }
    for json in [
      "9007199254740992", "-9007199254740993", "[1,9223372036854775807]",
      #"{"a":{"b":[99999999999999999999]}}"#, #"["\\",9007199254740993]"#, "", "1 2", "{",
    ] {
      #expect(PatchJSON.fault(inInput: bytes(json)) != nil, "\(json)")
    }
  }
}
