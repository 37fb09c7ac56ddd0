// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

import "./DemoToken.sol";

/// Burns one percent of every transfer, so that a payee receives less than the proxy's event says.
contract FeeOnTransferToken is DemoToken {
    constructor(string memory name_, string memory symbol_, uint8 decimals_) DemoToken(name_, symbol_, decimals_) {}

    function _move(address from, address to, uint256 value) internal override {
        uint256 burnt = value / 100;
        super._move(from, to, value - burnt);
        super._move(from, address(0), burnt);
    }
}
