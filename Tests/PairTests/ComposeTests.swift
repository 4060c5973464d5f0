import FerryTestSupport
import Foundation
import Testing

/// The file docker-compose.yml against the program it starts. No container runs here.
@Suite("docker-compose.yml", .hangLimit)
struct ComposeTests {
  /// The lines of each block without indentation, or, of `services`, with one level of it.
  private static func blocks() throws -> [String: [Substring]] {
    let text = try Project.text("docker-compose.yml")
    var blocks: [String: [Substring]] = [:]
    var (top, name) = ("", "")
    for line in text.split(separator: "\n") where !line.drop(while: \.isWhitespace).hasPrefix("#") {
      if let match = line.prefixMatch(of: #/([a-z-]+):/#) {
        (top, name) = (String(match.1), String(match.1))
      } else if top == "services", let match = line.wholeMatch(of: #/  ([a-z0-9-]+):/#) {
        name = "service " + match.1
      }
      blocks[name, default: []].append(line)
    }
    return blocks
  }

  /// Whether a service, or a block it includes, has a setting.
  private static func has(
    _ setting: String, _ lines: [Substring], _ blocks: [String: [Substring]]
  ) -> Bool {
    lines.contains { line in
      let line = line.trimmingCharacters(in: .whitespaces)
      if line.hasPrefix(setting + ":") { return true }
      guard let match = line.wholeMatch(of: #/<<: \*([a-z]+)/#) else { return false }
      return has(setting, blocks["x-" + String(match.1)] ?? [], blocks)
    }
  }

  @Test("every service has a limit of memory, and those that serve have one of files")
  func limits() throws {
    let blocks = try Self.blocks()
    let services = blocks.filter { $0.key.hasPrefix("service ") }
    #expect(services.count == 8)
    for (name, lines) in services {
      #expect(Self.has("mem_limit", lines, blocks), "\(name)")
    }
    for name in ["postgres", "postgres-standby", "ferryd-1", "ferryd-2", "proxy"] {
      let lines = try #require(services["service " + name])
      #expect(Self.has("ulimits", lines, blocks), "\(name)")
    }
    #expect(blocks["x-ferryd"]?.contains("    nofile: {soft: 16384, hard: 16384}") == true)
  }

  @Test("the nodes believe the proxy's fixed address, and the proxy overwrites what clients say")
  func proxyAddress() throws {
    let blocks = try Self.blocks()
    let address = "${FERRY_PROXY_ADDRESS:-172.31.213.250}"
    #expect(
      blocks["x-ferryd"]?.contains(
        "    FERRY_TRUSTED_PROXY: \(address),${FERRY_OUTER_PROXY:-127.0.0.1}") == true)
    #expect(blocks["service proxy"]?.contains("        ipv4_address: \(address)") == true)
    let proxy = try Project.text("Server/proxy/haproxy.cfg")
    for rule in [
      "http-request del-header Forwarded", "http-request del-header X-Forwarded-For unless outer",
      "http-request add-header X-Forwarded-For %[src]",
    ] { #expect(proxy.contains("\n  \(rule)\n"), "\(rule)") }
  }

  @Test("the nodes' variables are those that the server reads")
  func variables() async throws {
    let lines = try #require(try Self.blocks()["x-ferryd"])
    let names = lines.compactMap { $0.prefixMatch(of: #/    (FERRY_[A-Z_]+): /#)?.1 }
    #expect(names.contains("FERRY_READ_DATABASE") && names.contains("FERRY_TRACE_ENDPOINT"))
    let help = try await ChildProcess.run(try Executables.ferryd(), ["serve", "--help"]).output
    for name in names { #expect(help.contains(name), "\(name)") }
  }
}
