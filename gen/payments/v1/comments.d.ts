// Comments of proto/, by the full name of what they describe. Written by tools/generate.ts. Do not edit.
export declare const comments: Readonly<Record<string, string>>
