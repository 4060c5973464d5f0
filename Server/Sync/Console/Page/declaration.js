// The file of a folder that declares a bundle (SPEC.md §31). The server checks its contents again.
import { Failure } from "./api.js";

export const declarationName = "ferry-bundle.json";

const bytesMax = 64 << 10;
const members = ["name", "version", "entry", "services", "minShell"];
const names = /^[a-z0-9][a-z0-9_-]{0,63}$/;
const versions = /^(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){0,3}$/;

const fault = (reason) => new Failure(
  `${declarationName} does not declare a bundle`, reason, "Correct the file, and choose the folder again.");

/** Returns the declaration of a folder's bundle. Unknown members may be mistakes: they are refused. */
export async function readDeclaration(files) {
  const found = files.find(({ path }) => path === declarationName);
  if (!found) {
    throw new Failure("This folder is no bundle", `It has no file ${declarationName}.`,
      `Write {"name": "board", "version": "1"} into that file, and choose the folder again.`);
  }
  if (found.file.size > bytesMax) throw fault(`It has more than ${bytesMax} bytes.`);
  let value;
  try {
    value = JSON.parse(await found.file.text());
  } catch (error) {
    throw fault(`It is not JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw fault("It is not a JSON object.");
  }
  return checked(value);
}

function checked(value) {
  const unknown = Object.keys(value).find((name) => !members.includes(name));
  if (unknown !== undefined) throw fault(`A bundle has no member “${unknown.slice(0, 40)}”.`);
  if (typeof value.name !== "string" || !names.test(value.name)) {
    throw fault("Its name needs 1 to 64 characters of a–z 0–9 _ -, the first a letter or digit.");
  }
  for (const member of ["version", "minShell"]) {
    const version = value[member];
    if (member === "minShell" && version === undefined) continue;
    if (typeof version !== "string" || !versions.test(version)) {
      throw fault(`Its ${member} is a text of 1 to 4 numbers with dots, such as "1.12".`);
    }
  }
  for (const service of Array.isArray(value.services) ? value.services : []) {
    const other = Object.keys(service ?? {}).find((name) => !["name", "version"].includes(name));
    if (other !== undefined) throw fault(`A service has no member “${other.slice(0, 40)}”.`);
  }
  return value;
}
