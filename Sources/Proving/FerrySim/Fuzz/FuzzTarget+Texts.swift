import FerryCompression
import FerryHTTPServer
import FerryNetworking
import FerryPersistence
import FerryPlatform
import FerryProtocol

extension FuzzTarget {
  /// Texts, headers, and files of users.
  static let texts: [FuzzTarget] = [
    predicate,
    .text("name", ["0199c82c-0000-7000-8000-0000000000a1", "home", "e\u{301}\"\u{600}'"]) { text in
      let name = StoredRecordName(Name(text))
      guard name.withBytes({ StoredRecordName(bytes: $0).name }) == Name(text) else {
        throw FuzzFinding("a record's name comes back changed")
      }
      if case .uuid = name { return "an identifier" }
      return "a text of \(magnitude(text.utf8.count))"
    },
    .text(
      "cursor",
      [
        "5f3c9a1be2d40718.9.9",
        "5f3c9a1be2d40718.2000.2500.5000."
          + "0199c82c-c384-7000-800a-000000000384.38c96ad21f07b5e4.7d02c4519be83f6a.7",
      ]
    ) { text in
      guard let cursor = Cursor(text) else { return "refused" }
      guard Cursor(cursor.description) == cursor else { throw FuzzFinding("another cursor") }
      return "read"
    },
    .text("range", ["bytes=0-99", "bytes=-5", "bytes=0-0,5-,-1", "bytes = 1-2 , 4-"]) { text in
      guard let ranges = ByteRanges(header: text) else { return "ignored" }
      for size in [0, 1, 1000, Int.max] {
        guard case .ranges(let list) = ranges.resolved(size: size) else { continue }
        guard list.allSatisfy({ !$0.isEmpty && $0.lowerBound >= 0 && $0.upperBound <= size }) else {
          throw FuzzFinding("a range of \(size) bytes is outside: \(list)")
        }
      }
      return "read"
    },
    .text("tag", ["\"abc\"", "W/\"x\", \"y\"", "*"]) { text in
      let tags = EntityTag.list(text)
      return "\(tags.count) tags, \(EntityTag(header: text) == nil ? "refused" : "read")"
    },
    .text(
      "trace", ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\na=b,c@d=e"]
    ) { text in
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
      guard
        let context = TraceContext(
          traceparents: Array(lines.prefix(1)), tracestates: Array(lines.dropFirst()))
      else { return "refused" }
      guard TraceContext(traceparent: context.traceparent)?.trace == context.trace else {
        throw FuzzFinding("another trace")
      }
      return "read"
    },
    .text("accept-encoding", ["gzip, zstd", "gzip;q=0.5, *;q=0", "identity;q=0"]) { text in
      "\(String(describing: ContentCoding.negotiate(acceptEncoding: text)))"
    },
    .text("media-range", ["application/json", "image/*;q=0.8", "text/html; charset=utf-8"]) {
      text in
      MediaRange(text) == nil ? "refused" : "read"
    },
    .text("target", ["/v1/spaces/a%20b/changes?cursor=x&limit=5", "http://h:1/a?b=c+d"]) { text in
      do throws(HTTPFailure) {
        return "\(min(9, try RequestTarget(parsing: text).segments.count)) segments"
      } catch {
        return "refused"
      }
    },
    forwarded, events, compressed,
    table(.json, [#"[{"id":1,"a":"x"},{"id":"2","b":[1,{"c":null}]}]"#]),
    table(.jsonl, ["{\"id\":1}\n{\"id\":2,\"a\":1.5}\n"]),
    table(.csv, ["id,name,n\n1,\"a, \"\"b\"\"\",3\r\n2,c,\n"]),
  ]

  private static let predicate = FuzzTarget.text(
    "predicate",
    [
      "due < '2026-10-01' and (done = 0 or done is null) and not (id in ('a', 'b'))",
      "\"odd \"\"name\" between 1 and 2.5 or x'00ff' <> v",
      "not not true and a not in (null, -1e9)",
    ]
  ) { text in
    let predicate: RecordPredicate
    do throws(RecordPredicateError) {
      predicate = try RecordPredicate(text, key: "id")
    } catch {
      return kind(error.reason)
    }
    let written = predicate.text(key: "id")
    do throws(RecordPredicateError) {
      guard try RecordPredicate(written, key: "id") != predicate else {
        return "read \(magnitude(written.utf8.count))"
      }
    } catch {
      throw FuzzFinding("\(written.debugDescription) is not read back: \(error.reason)")
    }
    throw FuzzFinding("\(written.debugDescription) is read back as another predicate")
  }

  /// Addresses named by proxies. Without a declared proxy, nothing of it counts.
  private static let forwarded = FuzzTarget.text(
    "forwarded",
    [
      "192.0.2.1, 127.0.0.2",
      "for=192.0.2.60;proto=http;by=203.0.113.43, for=\"[2001:db8::1]:80\"",
      "for=unknown, for=_hidden", "[::1]:443 , 198.51.100.7:80",
    ]
  ) { text in
    guard let peer = IPAddress("127.0.0.1".utf8),
      let loopback = AddressRange("127.0.0.0/8")
    else {
      throw FuzzFinding("there is no address of a proxy")
    }
    return try TrustedProxies.Header.allCases.map { header -> String in
      let headers = HTTPHeaders([HTTPHeaders.Field(name: header.rawValue, value: text)])
      guard try TrustedProxies([], header: header).client(of: peer, headers) == peer else {
        throw FuzzFinding("a proxy that is not declared is believed")
      }
      do throws(HTTPFailure) {
        let client = try TrustedProxies([loopback], header: header).client(of: peer, headers)
        return client == peer ? "the proxy" : "a client"
      } catch {
        return "refused"
      }
    }.joined(separator: ", ")
  }

  private static let events = FuzzTarget(
    name: "events",
    samples: ["id: 13\nevent: head\ndata: {\"head\":\"13\"}\n\n: x\nretry: 10\r\n\r\n"]
  ) { bytes in
    var parser = ServerSentEventParser()
    guard let events = try? parser.feed(bytes) else { return "refused" }
    return "\(min(9, events.count)) events"
  }

  private static let compressed = FuzzTarget(
    name: "compressed", samples: ["gzip", "zstd"]
  ) { bytes in
    let limit = 1 << 20
    var kinds: [String] = []
    for coding in ContentCoding.allCases {
      // Half of the cases: damaged content; the rest: content in a round trip.
      if let content = try? coding.decompress(bytes, limit: limit) {
        guard content.count <= limit else { throw FuzzFinding("more than the limit") }
        kinds.append("read")
      }
      guard var coded = try? coding.compress(bytes) else { continue }
      guard (try? coding.decompress(coded, limit: max(1, bytes.count))) == bytes else {
        throw FuzzFinding("\(coding) does not bring the content back")
      }
      let place = coded.count * (bytes.count % 97) / 97
      coded[place] ^= UInt8(truncatingIfNeeded: 1 << (bytes.count % 8))
      if let content = try? coding.decompress(coded, limit: limit), content.count > limit {
        throw FuzzFinding("damaged content is larger than the limit")
      }
    }
    return "\(kinds.count) codings, \(magnitude(bytes.count))"
  }

  private static func table(_ format: ImportFormat, _ samples: [String]) -> FuzzTarget {
    FuzzTarget(name: "import-\(format.rawValue)", samples: samples) { bytes in
      var rows = 0
      do {
        try bytes.withUnsafeBytes { buffer in
          try ImportReader(format: format).read(buffer) { _, end in
            guard end <= buffer.count else { throw FuzzFinding("read past the end") }
            rows += 1
          }
        }
      } catch let error as ImportError {
        return kind(error.reason)
      }
      return "read \(magnitude(rows))"
    }
  }
}
