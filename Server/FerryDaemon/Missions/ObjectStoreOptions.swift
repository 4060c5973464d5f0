import FerryCommandLine
import FerryMissionServer
import FerryNetworking
import FerryPlatform
import Foundation

/// The options of a bucket of an S3-compatible store: `--NAME-endpoint`, `--NAME-region` and
/// `--NAME-credentials`.
enum ObjectStoreOptions {
  static func options(_ name: String) -> [OptionSpec] {
    let variable = "FERRY_\(name.uppercasedASCII)"
    return [
      OptionSpec(
        "\(name)-endpoint", value: "URL",
        help: "The address of the bucket's store; by default that of Amazon in the region.",
        environment: "\(variable)_ENDPOINT"),
      OptionSpec(
        "\(name)-region", value: "NAME", help: "The region of the bucket's store.",
        default: "us-east-1", environment: "\(variable)_REGION"),
      OptionSpec(
        "\(name)-credentials", value: "FILE",
        help: """
          A file with the key of the bucket: aws_access_key_id and aws_secret_access_key (and \
          aws_session_token) below [default]. It is read again if the store refuses the key. \
          Without it, the key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and \
          AWS_SESSION_TOKEN).
          """, kind: .file, environment: "\(variable)_CREDENTIALS"),
    ]
  }

  /// Returns the client of the bucket in `url`.
  static func client(
    _ url: String, _ name: String, _ arguments: ParsedArguments
  ) throws -> ObjectStoreClient {
    do {
      let settings = try ObjectStoreSettings(
        url, endpoint: arguments.stringIfPresent("\(name)-endpoint"),
        region: try arguments.string("\(name)-region"))
      let source: AWSCredentialSource
      if let file = arguments.stringIfPresent("\(name)-credentials") {
        source = .file(file)
      } else if let key = AWSCredentials(environment: ProcessInfo.processInfo.environment) {
        source = .fixed(key)
      } else {
        throw ObjectStoreError.configuration(
          "there is no key: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and "
            + "--\(name)-credentials names no file")
      }
      return try ObjectStoreClient(settings, source, transport: SystemTransport())
    } catch let error as ObjectStoreError {
      throw CommandFailure(
        "the bucket for the \(name) cannot be used", why: error.description,
        next: "check the address of the bucket, the options --\(name)-…, and the key",
        status: .usage, code: "\(name)_settings")
    }
  }

  /// Waits for an unreachable store, up to the time of `--start-wait`.
  static func waitUntilReady(
    _ client: ObjectStoreClient, _ name: String, _ arguments: ParsedArguments
  ) async throws {
    let deadline = ContinuousClock.now + (try arguments.duration("start-wait"))
    while true {
      do throws(ObjectStoreError) {
        return try await client.check()
      } catch {
        if case .unreachable(_, isTransient: true) = error, ContinuousClock.now < deadline {
          try await Task.sleep(for: .milliseconds(500))
          continue
        }
        throw CommandFailure(
          "the bucket for the \(name) cannot be used (\(client.settings))",
          why: error.description,
          next: "check its address, --\(name)-endpoint and --\(name)-region, and that the key may "
            + "list, read, write and remove below the prefix",
          code: "\(name)_unavailable")
      }
    }
  }
}
