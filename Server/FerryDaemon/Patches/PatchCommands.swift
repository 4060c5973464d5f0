import FerryCommandLine
import FerryMissionServer
import FerryProtocol

/// `ferryd patch …`. These commands work on files only, on any machine.
enum PatchCommands {
  static let root = CommandSpec(
    "patch", summary: "Sign scripts that replace a behaviour of an app until its next release.",
    discussion: """
      A patch is a script with a function `patch(input, call)`. An app that trusts the key runs it \
      instead of its own code, confined to its input and the services that the app grants. \
      Devices receive patches as files of a mission. Documentation/patches.md shows both sides.
      """,
    subcommands: [sign, show, key],
    examples: [
      ExampleSpec("Make a key", "ferryd patch key --key patches.pem"),
      ExampleSpec(
        "Sign a script",
        "ferryd patch sign discount.js --key patches.pem --app org.example.shop "
          + "--app-version 2.3.0 --behaviour cart.discount"),
    ])

  private static let keyOption = OptionSpec(
    "key", value: "FILE", help: "The Ed25519 key (PEM) that signs patches.", kind: .file,
    environment: "FERRY_PATCH_KEY", required: true)

  static let key = CommandSpec(
    "key", summary: "Show the public key of a key file; the file is created if absent.",
    discussion: """
      An app is built with this public key. The file allows its owner to change the app: keep it \
      on the machine that signs, not on a server.
      """,
    options: [keyOption], flags: [JSONOption.flag]
  ) { arguments in
    let text = Base64.text(try PatchSigning.newSigner(arguments).publicKey)
    let answer = JSONText.object([("publicKey", .string(text))])
    try TextOutput.standardOutput.line(arguments.flag("json") ? answer.text : text)
    return .done
  }

  static let sign = CommandSpec(
    "sign", summary: "Sign a script as a patch.",
    discussion: """
      The patch applies to exactly the versions of the app that --app-version names. It ends after \
      --expires, or with the app's next release.

      An app never returns to a patch with a lower sequence. Without --sequence, it is the number \
      of seconds since 1970, so that a later signature counts as newer.
      """,
    options: [
      keyOption,
      OptionSpec("app", value: "NAME", help: "The app's identifier.", required: true),
      OptionSpec(
        "app-version", value: "VERSION", help: "A release of the app that it applies to.",
        repeated: true, required: true),
      OptionSpec(
        "behaviour", value: "NAME", help: "The behaviour that it replaces.", required: true),
      OptionSpec(
        "service", value: "NAME", help: "A service that the script calls.", repeated: true),
      OptionSpec(
        "sequence", value: "N", help: "Its place among the patches of the behaviour.",
        kind: .integer(1...Int(Limits.sequenceMax))),
      OptionSpec(
        "expires", value: "TIME", help: "When it ends, from now on.", kind: .duration,
        default: "30d"),
      OptionSpec(
        "out", value: "FILE",
        help: "The signed patch; by default the script's name, ending in .ferrypatch.",
        kind: .file),
    ],
    flags: [JSONOption.flag],
    arguments: [ArgumentSpec("script", help: "The script, in JavaScript.", kind: .file)]
  ) { arguments in
    let document = try PatchSigning.document(arguments)
    let signer = try PatchSigning.signer(arguments)
    let script = try arguments.string("script")
    let path = arguments.stringIfPresent("out") ?? PatchSigning.target(of: script)
    let text = signer.sign(document.encoded(), type: PatchDocument.signatureType)
    try PatchSigning.write(text + "\n", to: path)
    try PatchReport.signed(document, path: path, isJSON: arguments.flag("json"))
    return .done
  }

  static let show = CommandSpec(
    "show", summary: "Show the behaviour that a patch replaces, and whether a key signed it.",
    discussion: "With --trust it fails unless one of these keys signed the patch.",
    options: [
      OptionSpec(
        "trust", value: "KEY", help: "A public key in base64, as `ferryd patch key` prints it.",
        repeated: true)
    ],
    flags: [JSONOption.flag, FlagSpec("script", help: "Print the script, too.")],
    arguments: [ArgumentSpec("file", help: "A signed patch.", kind: .file)]
  ) { arguments in
    let path = try arguments.string("file")
    let signed = try PatchSigning.read(path)
    let trust = try PatchSigning.trust(of: signed, arguments)
    let document = try PatchSigning.decode(signed, path)
    try PatchReport.show(
      document, trust, hasScript: arguments.flag("script"), isJSON: arguments.flag("json"))
    return trust == .other ? .failed : .done
  }
}
